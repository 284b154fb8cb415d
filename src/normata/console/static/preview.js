// The preview of a text follows what is typed. Without this, a button of the form shows it.
const shown = document.querySelector("[data-preview]");
const form = shown.closest("form");
const PAUSE = 500; // ms without typing
let timer;
let asking = new XMLHttpRequest();

function show() {
  asking.abort();
  const body = new FormData(form);
  body.set("step", "preview");
  asking = new XMLHttpRequest();
  asking.responseType = "document"; // the browser reads it as a page that runs nothing
  asking.addEventListener("load", ({ target: { status, response } }) => {
    const found = status === 200 && response?.querySelector("[data-preview]");
    if (found) {
      shown.replaceChildren(...found.childNodes);
    }
  });
  asking.open("POST", form.action);
  asking.send(new URLSearchParams(body));
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(show, PAUSE);
});
