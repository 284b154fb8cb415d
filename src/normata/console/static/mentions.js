// Suggests members while one types "@" in a comment. Without this script a name that is typed mentions as well.

const WAIT = 60; // milliseconds without a key before the service is asked
const TYPED = /(?<![\p{L}\p{N}_.])@(?=\S)([^@\n]{1,60})$/u; // as the service finds mentions
const MARGIN = 70; // pixels that the bar at the foot of a narrow page takes
const finder = document.querySelector("[data-palette]").href;
let made = 0;

function element(name, attributes, ...children) {
  const part = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    part.setAttribute(key, value);
  }
  part.append(...children);
  return part;
}

function upgrade(field) {
  const { mentions: title, found, nothing } = field.dataset;
  const area = field.querySelector("textarea");
  const own = `mentions-${made++}`;
  const list = element("div", { role: "listbox", id: own, class: "options", "aria-label": title });
  const status = element("p", { role: "status", class: "hint" });
  const combo = element("span", { class: "combo" });
  list.hidden = true;
  area.replaceWith(combo);
  combo.append(area, list);
  combo.after(status);
  // A text of several lines cannot have the role of a combobox, so it says what the list is by these.
  for (const [name, value] of [["aria-autocomplete", "list"], ["aria-haspopup", "listbox"], ["aria-controls", own]]) {
    area.setAttribute(name, value);
  }

  let asking = new AbortController();
  let timer = 0;
  let closed = ""; // what was typed when the list was closed by hand
  const typed = () => (area.selectionStart === area.selectionEnd ? TYPED.exec(area.value.slice(0, area.selectionStart)) : null);
  const active = () => list.querySelector("[aria-selected=true]");

  function mark(option) {
    active()?.setAttribute("aria-selected", "false");
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", option.id);
  }

  function close() {
    asking.abort();
    clearTimeout(timer);
    list.hidden = true;
    status.textContent = "";
    area.removeAttribute("aria-activedescendant");
  }

  function show(items) {
    list.replaceChildren(
      ...items.map(({ id, label, note }, place) => {
        const parts = [element("span", {}, label), " ", element("span", { class: "small" }, note)];
        return element("div", { role: "option", id: `${own}-${place}`, "data-text": id, "aria-selected": "false" }, ...parts);
      }),
    );
    list.hidden = !items.length;
    // Above the text where there is no room below it, as over the keyboard of a phone.
    const bottom = area.getBoundingClientRect().bottom + list.offsetHeight + MARGIN;
    list.classList.toggle("above", bottom > (window.visualViewport?.height ?? window.innerHeight));
    status.textContent = items.length ? found : nothing;
    if (items.length) {
      mark(list.firstChild);
    }
  }

  function choose(option) {
    const match = typed();
    const text = option.dataset.text;
    const after = area.value.slice(area.selectionStart);
    close();
    if (match) {
      area.setRangeText(/^\s/.test(after) ? text : `${text} `, match.index, area.selectionStart, "end");
    }
    closed = text.slice(1);
    area.focus();
  }

  async function ask(wanted) {
    const { signal } = asking;
    const address = new URL(finder);
    address.searchParams.set("kind", "mentions");
    address.searchParams.set("search", wanted);
    try {
      const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
      const groups = answer.ok && !answer.redirected ? await answer.json() : [];
      if (!signal.aborted) {
        show(groups.flatMap(({ items }) => items));
      }
    } catch {
      // Nothing is suggested; what is typed mentions all the same.
    }
  }

  area.addEventListener("input", () => {
    const wanted = typed()?.[1].trim() ?? "";
    close();
    // Whoever goes on after a name, or has closed the list, wants no more suggestions for it.
    if (wanted && !(closed && wanted.startsWith(closed))) {
      closed = "";
      asking = new AbortController();
      timer = setTimeout(ask, WAIT, wanted);
    }
  });
  area.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.isComposing || list.hidden) {
      return;
    }
    if (event.key in steps) {
      event.preventDefault();
      const all = [...list.children];
      mark(all.at((all.indexOf(active()) + steps[event.key]) % all.length));
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      choose(active());
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      closed = typed()?.[1].trim() ?? "";
      close();
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the text keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) {
      choose(option);
    }
  });
  area.addEventListener("blur", close);
}

for (const field of document.querySelectorAll("[data-mentions]")) {
  upgrade(field);
}
