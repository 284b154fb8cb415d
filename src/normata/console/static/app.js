// What makes the pages handier. Everything works without it.

// Where the sidebar or the tabs scroll, they show where one is. `scrollIntoView` would also have the next Tab begin there.
const entry = document.querySelector(".side [aria-current]");
if (entry) {
  const side = entry.closest(".side");
  side.scrollTop += Math.max(0, entry.getBoundingClientRect().bottom - side.getBoundingClientRect().bottom);
}

const tab = document.querySelector(".tabs [aria-current]");
if (tab) {
  const { parentElement: tabs } = tab;
  tabs.scrollLeft = tab.getBoundingClientRect().right - tabs.getBoundingClientRect().right;
}

// A menu closes when one goes elsewhere, and a note when it was read.
addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = menu.contains(target);
  }
});
addEventListener("keydown", ({ key }) => {
  const menu = key === "Escape" && document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
for (const link of document.querySelectorAll(".toast a[data-dismiss]")) {
  history.replaceState(null, "", link.href); // whoever comes back has read it
  link.addEventListener("click", (event) => {
    event.preventDefault();
    link.closest(".toast").remove();
  });
}

// Times are told where the reader is, from the next page on. To find that out takes long, so it waits for a pause.
function noteZone() {
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone ?? "");
  if (zone && !document.cookie.includes(`normata-zone=${zone}`)) {
    document.cookie = `normata-zone=${zone}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  }
}
(window.requestIdleCallback ?? setTimeout)(noteZone);

for (const button of document.querySelectorAll("[data-print]")) {
  button.addEventListener("click", () => print());
}

// A file that was chosen is previewed at once.
for (const input of document.querySelectorAll("[data-at-once]")) {
  input.addEventListener("change", () => {
    if (input.files.length) {
      input.form.requestSubmit(input.form.querySelector("[value=preview]"));
    }
  });
}

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
  let last; // the box that was clicked before: with Shift, those up to it follow
  for (const box of boxes) {
    box.addEventListener("change", noteSelection);
    box.addEventListener("click", ({ shiftKey }) => {
      if (shiftKey && last) {
        const ends = [boxes.indexOf(last), boxes.indexOf(box)];
        for (const one of boxes.slice(Math.min(...ends), Math.max(...ends))) {
          one.checked = box.checked;
        }
        getSelection().removeAllRanges();
      }
      last = box;
    });
  }
  noteSelection();
}

// Where a form leads back to its own page, the page stays where it was, with the same card at the same height, and who works
// with keys is at the same row. A form that leads on to the next of several things begins at its top.
const PLACE = "normata.place";
addEventListener("submit", (event) => {
  const { target: form, submitter: button } = event;
  if (form.method === "post" && !event.defaultPrevented && !("work" in form.dataset)) {
    const card = button?.closest("[aria-labelledby]");
    const row = button?.matches("[form]:focus-visible") ? { form: button.form.id, number: rowButtons(button.form.id).indexOf(button) } : null;
    const place = { path: location.pathname, card: card?.getAttribute("aria-labelledby"), top: card?.getBoundingClientRect().top, y: scrollY, row };
    sessionStorage.setItem(PLACE, JSON.stringify(place));
  }
});

function rowButtons(form) {
  return [...document.querySelectorAll(`main button[form="${CSS.escape(form)}"]`)];
}

const place = JSON.parse(sessionStorage.getItem(PLACE));
sessionStorage.removeItem(PLACE);
if (place?.path === location.pathname && performance.getEntriesByType("navigation")[0]?.redirectCount) {
  const card = place.card && document.getElementById(place.card)?.closest("[aria-labelledby]");
  scrollTo({ top: card ? scrollY + card.getBoundingClientRect().top - place.top : place.y, behavior: "instant" });
  if (place.row) {
    const buttons = rowButtons(place.row.form);
    buttons[Math.min(place.row.number, buttons.length - 1)]?.focus({ preventScroll: true });
  }
}

// What was opened beside a list is where one writes next.
if (document.referrer && new URL(location.href).searchParams.has("open")) {
  document.querySelector(".panel [name=coverageStatus]:is(:checked, :not(:checked))")?.focus({ preventScroll: true });
}

// What is opened beside a list leaves the selection as it is.
addEventListener("click", (event) => {
  const link = all && event.target.closest("main a[href*='open=']");
  if (link) {
    const address = new URL(link.href);
    for (const value of new URL(location.href).searchParams.getAll("selected")) {
      address.searchParams.append("selected", value);
    }
    link.href = address;
  }
});

// A form comes back to the selection as it is now.
addEventListener("submit", (event) => {
  const chosen = new URL(location.href).searchParams.getAll("selected");
  for (const back of all ? event.target.querySelectorAll("[name=return_to]") : []) {
    const address = new URL(back.value, location.href);
    address.searchParams.delete("selected");
    for (const value of chosen) {
      address.searchParams.append("selected", value);
    }
    back.value = address.pathname + address.search + address.hash;
  }
});
