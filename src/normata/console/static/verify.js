// Verifies in the browser that a file is that of a version, by its proof and a checkpoint. Nothing is sent anywhere.
// `normata soa verify` does the same (soa_versions/verifying.py): change both together.

const part = document.querySelector("[data-verify]");
const status = part.querySelector("[role=status]");
const FORMATS = ["json", "csv", "xlsx", "pdf"];
const encoder = new TextEncoder();

class Failure extends Error {
  constructor(key, values = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

const says = (key, values = {}) => part.dataset[key].replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));

const toHex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

const toBytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

function fromHex(text) {
  if (!/^[0-9a-f]{64}$/.test(text)) {
    throw new Failure("unreadable");
  }
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}

async function sha256(...pieces) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob(pieces).arrayBuffer()));
}

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

// RFC 9162, section 2.1.3.2. The numbers may be larger than 32 bits, so they are divided, not shifted.
async function rootBy(leaf, number, size, path) {
  let [found, place, last] = [leaf, number, size - 1];
  for (const sibling of path.map(fromHex)) {
    if (last === 0) {
      return null;
    }
    if (place % 2 === 1 || place === last) {
      found = await sha256(NODE, sibling, found);
      while (place % 2 === 0 && place > 0) {
        [place, last] = [place / 2, Math.floor(last / 2)];
      }
    } else {
      found = await sha256(NODE, found, sibling);
    }
    [place, last] = [Math.floor(place / 2), Math.floor(last / 2)];
  }
  return last === 0 && number < size ? toHex(found) : null;
}

// A signed note of C2SP: a text with origin, size and root, an empty line, and a line for each signature.
function readNote(whole) {
  const clean = whole.replaceAll("\r\n", "\n");
  const at = clean.lastIndexOf("\n\n");
  const [origin, size, root] = clean.slice(0, at).split("\n");
  if (at < 0 || !/^\d+$/.test(size ?? "") || !root) {
    throw new Failure("unreadable");
  }
  const signatures = clean.slice(at + 2).trimEnd().split("\n").map((line) => line.split(" "));
  return { origin, size: Number(size), root: toHex(toBytes(root)), text: `${clean.slice(0, at)}\n`, signatures };
}

function noteIn(text) {
  try {
    return readNote(String(JSON.parse(text).note));
  } catch (error) {
    if (error instanceof Failure) {
      throw error;
    }
    return readNote(text);
  }
}

async function isSigned(note, key) {
  const [name, , ...encoded] = key.split("+");
  const whole = toBytes(encoded.join("+"));
  const id = (await sha256(encoder.encode(`${name}\n`), whole)).slice(0, 4);
  const signed = note.signatures
    .filter(([dash, signer]) => dash === "\u2014" && signer === name && name === note.origin)
    .map(([, , signature]) => toBytes(signature))
    .find((bytes) => toHex(bytes.slice(0, 4)) === toHex(id));
  if (!signed) {
    return false;
  }
  const known = await crypto.subtle.importKey("raw", whole.slice(1), { name: "Ed25519" }, false, ["verify"]);
  return crypto.subtle.verify({ name: "Ed25519" }, known, signed.slice(4), encoder.encode(note.text));
}

async function eventIn(event, proof, note) {
  const hash = await sha256(LEAF, encoder.encode(event.event));
  const root = await rootBy(hash, event.leaf, note.size, event.inclusionPath);
  const body = JSON.parse(event.event);
  const origin = `normata/${encodeURIComponent(body.organizationId)}`;
  if (toHex(hash) !== event.hash || root !== note.root) {
    throw new Failure("event", { leaf: event.leaf });
  }
  if (body.kind !== "soaVersions" || body.recordId !== proof.versionId || decodeURIComponent(origin) !== decodeURIComponent(note.origin)) {
    throw new Failure("event", { leaf: event.leaf });
  }
  return { leaf: event.leaf, after: body.after ?? {} };
}

async function verify(content, proof, note, inside) {
  const first = Math.min(...proof.events.map(({ leaf }) => leaf));
  if (note.origin !== inside.origin) {
    throw new Failure("origin", { origin: note.origin, other: inside.origin });
  }
  if (proof.events.length === 0) {
    throw new Failure("nothing");
  }
  if (note.size <= first) {
    throw new Failure("before", { size: note.size, leaf: first });
  }
  if (note.size !== inside.size) {
    throw new Failure("size", { size: note.size, other: inside.size });
  }
  if (note.root !== inside.root) {
    throw new Failure("rewritten");
  }
  const events = [];
  for (const event of proof.events) {
    events.push(await eventIn(event, proof, note));
  }
  const made = events.find(({ after }) => "jsonSha256" in after);
  if (!made) {
    throw new Failure("nothing");
  }
  const found = toHex(await sha256(content));
  const { number } = made.after;
  const format = FORMATS.find((name) => made.after[`${name}Sha256`] === found);
  if (!format) {
    const other = (proof.others ?? []).find(({ hashes }) => Object.values(hashes).includes(found));
    throw other ? new Failure("another", { number, other: other.number }) : new Failure("changed", { number });
  }
  const fields = Object.assign({}, ...events.map(({ after }) => after));
  const erased = events.find(({ after }) => after.erasedAt);
  return [
    says("proven", { version: number, format: format.toUpperCase() }),
    says(fields.state.toLowerCase(), { at: fields.approvedAt, by: fields.approverId, until: fields.supersededAt }),
    says("place", { events: events.map(({ leaf }) => leaf).join(", "), size: note.size, origin: note.origin }),
    ...(erased ? [says("erased", { leaf: erased.leaf })] : []),
  ].join(" ");
}

async function answer() {
  const chosen = (name) => part.querySelector(`[name=${name}]`);
  const [file, proofFile, checkpoint] = ["file", "proof", "checkpoint"].map((name) => chosen(name).files[0]);
  const key = chosen("key").value.trim();
  if (!file || !proofFile) {
    throw new Failure("missing");
  }
  const proof = JSON.parse(await proofFile.text());
  const inside = readNote(proof.checkpoint.note);
  const note = checkpoint ? noteIn(await checkpoint.text()) : inside;
  let signature = says("unsigned");
  if (key) {
    const isGood = await isSigned(note, key).catch((error) => {
      throw error.name === "NotSupportedError" ? new Failure("unable") : new Failure("forged");
    });
    if (!isGood) {
      throw new Failure("forged");
    }
    signature = says("signed");
  }
  return `${await verify(file, proof, note, inside)} ${signature}`;
}

part.querySelector("button").addEventListener("click", async () => {
  status.textContent = "";
  status.textContent = await answer().catch((error) =>
    error instanceof Failure ? says(error.key, error.values) : says("unreadable"),
  );
});
