// The palette: finds controls, records, frameworks and pages while one types. The page behind its link does the same.

const WAIT = 120; // milliseconds without a key before the service is asked

const palette = document.querySelector("#palette");
const field = palette.querySelector("input");
const list = palette.querySelector("[role=listbox]");
const told = palette.querySelector("[role=status]");
const opener = document.querySelector("[data-palette]");
const hint = opener.querySelector("kbd");

let asking = new AbortController();
let timer = 0;
let opensFirst = false; // Enter was pressed before there was an answer

const fold = (text) => text.normalize("NFKC").toLowerCase().trim();
const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

// What this page leads to.
const links = [...document.querySelectorAll(".side a, main :is(.head, .actions) a:not([download]), #person a")].map((link) => ({
  label: link.textContent.trim(),
  note: "",
  address: link.href,
}));

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option?.id ?? "");
}

function show(groups) {
  let number = 0;
  const seen = new Set();
  const made = groups.map(({ name, items }, place) => {
    const fresh = items.filter(({ address }) => {
      const { href } = new URL(address, location.href);
      return !seen.has(href) && seen.add(href);
    });
    const shown = fresh.map(({ label, note, address }) =>
      element(
        "div",
        { role: "option", id: `palette-${number++}`, "aria-selected": "false", "data-address": address },
        element("span", {}, label),
        " ",
        element("span", { class: "small" }, note),
      ),
    );
    const heading = element("div", { class: "heading", id: `palette-group-${place}` }, name);
    return shown.length ? element("div", { role: "group", "aria-labelledby": heading.id }, heading, ...shown) : "";
  });
  list.replaceChildren(...made);
  field.setAttribute("aria-expanded", String(number > 0));
  choose(options()[0]);
}

function ownPages(words) {
  const items = links.filter(({ label }) => words.every((word) => fold(label).includes(word)));
  return { name: palette.dataset.pages, items };
}

async function ask(text, pages) {
  const { signal } = asking;
  const address = new URL(opener.href);
  address.searchParams.set("search", text);
  try {
    const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
    const groups = answer.ok && !answer.redirected ? await answer.json() : null;
    if (signal.aborted) {
      return;
    }
    told.textContent = groups ? "" : palette.dataset.failed;
    const [first, ...others] = groups?.[0]?.name === pages.name ? groups : [{ items: [] }, ...(groups ?? [])];
    show([{ name: pages.name, items: [...pages.items, ...first.items] }, ...others]);
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    told.textContent = palette.dataset.failed;
  }
  if (!options().length && !told.textContent) {
    told.textContent = palette.dataset.nothing;
  }
  palette.removeAttribute("aria-busy");
  if (opensFirst) {
    open(chosen());
  }
}

function look() {
  // Whatever was asked before, its answer must not come up any more.
  asking.abort();
  asking = new AbortController();
  clearTimeout(timer);
  opensFirst = false;
  told.textContent = "";
  const text = field.value.trim();
  const pages = ownPages(fold(text).split(/\s+/));
  show([pages]);
  palette.toggleAttribute("aria-busy", text !== "");
  if (text) {
    timer = setTimeout(ask, WAIT, text, pages);
  }
}

function open(option) {
  if (option) {
    palette.close();
    location.assign(option.dataset.address);
  } else {
    opensFirst = palette.hasAttribute("aria-busy");
  }
}

function summon() {
  if (!palette.open) {
    document.querySelector("dialog[open]")?.close();
    palette.showModal();
    field.value = "";
    look();
  }
}

field.addEventListener("input", look);
field.addEventListener("keydown", (event) => {
  if (event.isComposing) {
    return;
  }
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) {
    event.preventDefault();
    const all = options();
    choose(all.at((all.indexOf(chosen()) + steps[event.key]) % all.length));
  } else if (event.key === "Enter") {
    event.preventDefault();
    open(chosen());
  }
});
list.addEventListener("click", (event) => open(event.target.closest("[role=option]")));
palette.addEventListener("close", () => {
  asking.abort();
  clearTimeout(timer);
});

for (const link of document.querySelectorAll("[data-palette]")) {
  link.addEventListener("click", (event) => {
    if (!(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      summon();
    }
  });
}
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key === "k") {
    event.preventDefault();
    summon();
  }
});

if (/^Mac|^iP/.test(navigator.platform)) {
  hint.textContent = "⌘ K";
}
