// What makes the pages handier. Everything works without it.

// Where the navigation scrolls, it shows where one is.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Copy a request.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.dataset.done = "";
  });
}

// Select all of a page; and keep the selection in the address, so that it survives an edit. Servers and proxies take
// no longer addresses: a selection that does not fit is in the boxes alone.
const LONGEST = 6000; // characters of an address
const all = document.querySelector("[data-all]");
const boxes = [...document.querySelectorAll("input[name=selected][form]")];

function noteSelection() {
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  const address = new URL(location.href);
  address.searchParams.delete("selected");
  for (const value of chosen) {
    address.searchParams.append("selected", value);
  }
  if (address.href.length > LONGEST) {
    address.searchParams.delete("selected");
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

// State coverage in the row. Without script the link leads to the form on the page of the control.
const form = document.querySelector("#row");

function openRow(link) {
  const { dataset, href } = link;
  const address = new URL(href);
  const { elements } = form;
  form.action = `${address.pathname}coverage/`;
  form.querySelector("h2").textContent = link.getAttribute("aria-label");
  elements.return_to.value = address.searchParams.get("return_to");
  elements.assessed_at.value = dataset.statedAt;
  elements.coverageStatus.value = dataset.state;
  elements.coverageGap.value = dataset.gap;
  elements.justification.value = dataset.justification;
  elements.applies.checked = !("excluded" in dataset);
  form.showPopover({ source: link });
  form.querySelector("input:checked").focus();
}

addEventListener("click", (event) => {
  const link = event.target.closest("a[data-state]");
  if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
    event.preventDefault();
    openRow(link);
  }
});

// A form comes back to the address as it is now.
addEventListener("submit", (event) => {
  const back = event.target.elements.return_to;
  if (all && back) {
    const [, path, , place] = back.value.match(/^([^?#]*)(\?[^#]*)?(#.*)?$/);
    back.value = path + location.search + (place ?? "");
  }
});
