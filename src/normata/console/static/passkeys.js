// Passkeys, on forms with data-passkey: "get" asks the browser for a signature, "create" for a new key.
// What the browser answers goes into the field `credential`, and the form is sent as any other.

const toBytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

const withBytes = (credentials) => (credentials ?? []).map((one) => ({ ...one, id: toBytes(one.id) }));

async function ask(form) {
  const answer = await fetch(form.dataset.options, { method: "POST" });
  if (!answer.ok) {
    return null;
  }
  const options = await answer.json();
  const publicKey = { ...options, challenge: toBytes(options.challenge) };
  if (form.dataset.passkey === "get") {
    return navigator.credentials.get({ publicKey });
  }
  publicKey.user = { ...options.user, id: toBytes(options.user.id) };
  publicKey.excludeCredentials = withBytes(options.excludeCredentials);
  return navigator.credentials.create({ publicKey });
}

function written(credential) {
  const { response } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const given = parts.filter((part) => response[part]);
  return JSON.stringify({
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    clientExtensionResults: {},
    response: Object.fromEntries(given.map((part) => [part, toText(response[part])])),
  });
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.hidden = !window.PublicKeyCredential;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const failure = form.querySelector("[role=alert]");
    failure.hidden = true;
    const credential = await ask(form).catch(() => null);
    if (credential === null) {
      failure.hidden = false;
      return;
    }
    form.elements.credential.value = written(credential);
    form.submit();
  });
}
