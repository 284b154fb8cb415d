// The preview of a text follows what is typed. Without this, a button of the form shows it.
const shown = document.querySelector("[data-preview]");
const form = shown.closest("form");
const PAUSE = 500; // ms without typing
let timer;
let asking;

async function show() {
  asking?.abort();
  asking = new AbortController();
  const body = new URLSearchParams(new FormData(form));
  body.set("step", "preview");
  try {
    const answer = await fetch(form.action, { method: "post", body, signal: asking.signal });
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-preview]");
    if (answer.ok && found) {
      shown.replaceChildren(...found.childNodes);
    }
  } catch {
    // A later one is under way, or the network is away: what is shown stays.
  }
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE);
});
