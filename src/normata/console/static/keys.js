// Keys that are a letter or a sign. None counts where one writes, and all of them can be turned off (WCAG 2.1.4).

const NAME = "normata.keys";
const TOGETHER = 1500; // milliseconds between `g` and its letter

const help = document.querySelector("#keys");
const box = document.querySelector("[data-keys-on]");
let goes = 0; // when `g` was pressed

function areOn() {
  try {
    return localStorage.getItem(NAME) !== "off";
  } catch {
    return true; // a browser that keeps nothing for us
  }
}

function isWriting(target) {
  return target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio]), textarea, select");
}

// The rows of a list, each by the link that opens it.
function rows() {
  const all = document.querySelectorAll("main tbody tr, main .lines > li");
  return [...all].map((row) => row.querySelector(":is(th, .id) a") ?? row.querySelector("a")).filter((link) => link);
}

function move(step) {
  const links = rows();
  const row = document.activeElement.closest("tr, li");
  const at = row ? links.findIndex((link) => row.contains(link)) : -1;
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// The row that one is in.
const here = () => document.activeElement.closest("tr");

const actions = {
  j: () => move(1),
  k: () => move(-1),
  x: () => here()?.querySelector("[name=selected]")?.click(),
  o: () => here()?.querySelector(".act a[href*='open=']")?.click(),
  g: () => {
    goes = performance.now();
  },
  "/": () => {
    const search = document.querySelector("main [data-search]");
    if (search) {
      search.select();
    } else {
      document.querySelector("[data-palette]").click();
    }
  },
  "?": () => help.showModal(),
};

addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) {
    return;
  }
  if (!areOn() || isWriting(target) || document.querySelector("dialog[open], :popover-open")) {
    return;
  }
  const isGoing = performance.now() - goes < TOGETHER && goes > 0;
  goes = 0;
  const name = isGoing ? "go" : "key";
  const pressed = document.querySelector(`[data-${name}="${CSS.escape(key)}"]`);
  if (pressed) {
    event.preventDefault();
    pressed.click();
  } else if (!isGoing && Object.hasOwn(actions, key)) {
    event.preventDefault();
    actions[key]();
  }
});

// Which keys there are, and whether they count.
for (const button of document.querySelectorAll("[data-keys]")) {
  button.addEventListener("click", () => help.showModal());
}
box.checked = areOn();
box.addEventListener("change", () => localStorage.setItem(NAME, box.checked ? "on" : "off"));
addEventListener("storage", () => {
  box.checked = areOn(); // changed in another window
});
