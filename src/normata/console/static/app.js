// What makes the pages handier. Everything works without it.

// Copy a request.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.dataset.done = "";
  });
}

// Select all of a page; and keep the selection in the address, so that it survives an edit.
const all = document.querySelector("[data-all]");
const boxes = [...document.querySelectorAll("input[name=selected][form]")];

function noteSelection() {
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  const address = new URL(location.href);
  address.searchParams.delete("selected");
  for (const value of chosen) {
    address.searchParams.append("selected", value);
  }
  if (address.href !== location.href) {
    history.replaceState(null, "", address);
  }
  const count = document.querySelector("[data-selected]");
  if (count) {
    count.dataset.selected = chosen.length || "";
  }
  if (all) {
    all.checked = chosen.length === boxes.length;
    all.indeterminate = chosen.length > 0 && !all.checked;
  }
}

if (all && boxes.length) {
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) {
      box.checked = all.checked;
    }
    noteSelection();
  });
  for (const box of boxes) {
    box.addEventListener("change", noteSelection);
  }
  noteSelection();
}

// A form comes back to the address as it is now.
addEventListener("submit", (event) => {
  const back = event.target.elements.return_to;
  if (all && back) {
    const [, path, , place] = back.value.match(/^([^?#]*)(\?[^#]*)?(#.*)?$/);
    back.value = path + location.search + (place ?? "");
  }
});
