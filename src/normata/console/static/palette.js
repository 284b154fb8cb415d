// The palette: finds controls, records, frameworks and pages while one types, does what the page does, and remembers
// what was opened last. The page behind its link finds the same.

const WAIT = 25; // milliseconds without a key before the service is asked
const MOST_RECENT = 6;

const palette = document.querySelector("#palette");
const field = palette.querySelector("input");
const list = palette.querySelector("[role=listbox]");
const told = palette.querySelector("[role=status]");
const opener = document.querySelector("[data-palette]");
const hint = opener.querySelector("kbd");
const STORE = `normata.recent.${palette.dataset.of}`; // of each person in each organization its own

let asking = new AbortController();
let timer = 0;
let opensFirst = false; // Enter was pressed before there was an answer
let shown = []; // what the options open or do, in their order

const fold = (text) => text.normalize("NFKC").toLowerCase().trim();
const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

// What people read of a link or a button: nothing of keys, pictures, or what stands at its end.
function words(part) {
  const copy = part.cloneNode(true);
  for (const other of copy.querySelectorAll("kbd, [aria-hidden=true], .far, .n, .count")) {
    other.remove();
  }
  return (part.ariaLabel ?? copy.textContent).replace(/\s+/g, " ").trim();
}

function offered(part) {
  const { label = words(part), words: also = "" } = part.dataset;
  const menu = part.closest("details.menu")?.querySelector("summary");
  const opens = part.matches("a[href]:not([download])");
  const does = opens ? { address: part.href } : { act: () => part.click() };
  const isHere = part.matches("main *");
  return { label: menu ? `${words(menu)}: ${label}` : label, note: "", also, isHere, ...does };
}

// What this page does, and where it leads. That is found when somebody asks: most pages are left without.
let offers;

function offersOfPage() {
  const of = (...selectors) => selectors.flatMap((which) => [...document.querySelectorAll(which)]);
  const does = of("main .head :is(a, button)", ".top > [popovertarget=day]", "#new a[data-label], #person button, .foot [data-keys]");
  return {
    doing: does.filter((part) => !part.closest(".sheet, h1, .meta")).map(offered),
    links: of(".side a:not([data-view])", "#person a").map(offered),
    views: of(".side a[data-view]").map(offered),
  };
}

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
  const seen = new Set();
  shown = [];
  const made = groups.map(({ name, items }, place) => {
    const fresh = items.filter(({ address, label }) => {
      const which = address ? new URL(address, location.href).href : label;
      return !seen.has(which) && seen.add(which);
    });
    const parts = fresh.map((item) => {
      const id = `palette-${shown.push(item) - 1}`;
      const note = element("span", { class: "small" }, item.note);
      return element("div", { role: "option", id, "aria-selected": "false" }, element("span", {}, item.label), " ", note);
    });
    const heading = element("div", { class: "heading", id: `palette-group-${place}` }, name);
    return parts.length ? element("div", { role: "group", "aria-labelledby": heading.id }, heading, ...parts) : "";
  });
  list.replaceChildren(...made);
  field.setAttribute("aria-expanded", String(shown.length > 0));
  choose(options()[0]);
}

// What was opened last, in this browser; nothing where it keeps nothing for us.
function recent() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? [];
  } catch {
    return [];
  }
}

function remember({ label, note, address }) {
  const { pathname, search } = new URL(address, location.href);
  const path = pathname + search;
  const others = recent().filter((one) => one.address !== path);
  try {
    localStorage.setItem(STORE, JSON.stringify([{ label, note, address: path }, ...others].slice(0, MOST_RECENT)));
  } catch {
    // Then it is not remembered.
  }
}

const begins = ({ label, also }, text) => ` ${fold(label)} ${also}`.includes(` ${text}`); // at a word

// What here has all words: what is called so comes first.
function matching(items, text) {
  const typed = text.split(/\s+/);
  const has = ({ label, also }) => typed.every((word) => `${fold(label)} ${also}`.includes(word));
  return items.filter(has).sort((one, other) => Number(begins(other, text)) - Number(begins(one, text)));
}

function ownGroups(text) {
  const typed = fold(text);
  const { doing, links, views } = (offers ??= offersOfPage());
  const own = [
    { name: palette.dataset.actions, items: matching(doing, typed) },
    { name: palette.dataset.pages, items: matching(links, typed) },
    { name: palette.dataset.views, items: matching(views, typed) },
  ];
  const here = ({ address }) => address === location.pathname;
  const [does, ...leads] = own;
  const first = { ...does, items: does.items.filter(({ isHere }) => isHere) }; // before one types, just what is here
  return text ? own : [{ name: palette.dataset.recent, items: recent().filter((one) => !here(one)) }, first, ...leads];
}

// The service puts first what is called as was typed. Only what is called so here stands before that. A saved view
// stands after the pages, whatever it is called.
function together(own, found, text) {
  const here = own.map(({ name, items }) => {
    const more = found.find((one) => one.name === name)?.items ?? [];
    return { name, items: [...items, ...more] };
  });
  const isHere = ({ name }) => own.some((one) => one.name === name);
  const others = found.filter((one) => !isHere(one));
  const isCalledSo = found.slice(0, 1).some(isHere) || own.some(({ items }) => items.some((one) => begins(one, text)));
  return isCalledSo ? [...here, ...others] : [...others.slice(0, 1), ...here, ...others.slice(1)];
}

async function ask(text, own) {
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
    show(together(own, groups ?? [], fold(text)));
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    told.textContent = palette.dataset.failed;
  }
  if (!shown.length && !told.textContent) {
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
  const own = ownGroups(text);
  show(own);
  palette.toggleAttribute("aria-busy", text !== "");
  if (text) {
    timer = setTimeout(ask, WAIT, text, own);
  }
}

function open(option) {
  if (!option) {
    opensFirst = palette.hasAttribute("aria-busy");
    return;
  }
  const item = shown[options().indexOf(option)];
  palette.close();
  if (item.act) {
    item.act();
  } else {
    remember(item);
    location.assign(item.address);
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

// A page of one thing is remembered, however one came there.
const { thing } = document.querySelector("main").dataset;
if (thing !== undefined) {
  remember({ label: words(document.querySelector("h1")), note: thing, address: location.pathname });
}

// Who signs out leaves nothing behind that the next person at this computer could read.
document.querySelector("#person form[data-leaves]")?.addEventListener("submit", () => {
  for (const name of Object.keys(localStorage).filter((one) => one.startsWith("normata.recent."))) {
    localStorage.removeItem(name);
  }
});

if (/^Mac|^iP/.test(navigator.platform)) {
  hint.textContent = "⌘ K";
}
