// What a record refers to is chosen by what one types. Without this script it is a list, and a line that finds others.

const WAIT = 60; // milliseconds without a key before the service is asked
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
  const { picker: kind, nothing, failed } = field.dataset;
  const select = field.querySelector("select");
  const label = field.querySelector("label");
  const known = [...select.options].map(({ value, text }) => ({ id: value, label: text.trim(), note: "" }));
  const own = `picker-${made++}`;
  const input = element("input", {
    ...Object.fromEntries([...select.attributes].filter(({ name }) => /^(id|aria-.*)$/.test(name)).map((one) => [one.name, one.value])),
    role: "combobox",
    autocomplete: "off",
    spellcheck: "false",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": own,
    placeholder: select.options[0].text,
  });
  const list = element("div", { role: "listbox", id: own, class: "options", "aria-label": label.textContent.trim() });
  const status = element("p", { role: "status", class: "hint" });
  list.hidden = true;
  select.hidden = true;
  select.removeAttribute("id");
  field.querySelector(".finding")?.remove();
  select.after(element("span", { class: "combo" }, input, list), status);

  let asking = new AbortController();
  let timer = 0;
  let isWaiting = false; // for the answer to what was typed
  let submitter; // the button that was pressed meanwhile
  const name = () => (select.value ? select.selectedOptions[0].text.trim() : "");
  const options = () => [...list.children];
  const active = () => list.querySelector("[aria-selected=true]");
  input.value = name();

  function mark(option) {
    active()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option?.id ?? "");
  }

  function show(items, chosen) {
    list.replaceChildren(
      ...items.map((item, place) => {
        const parts = [element("span", {}, item.label), " ", element("span", { class: "small" }, item.note)];
        return element("div", { role: "option", id: `${own}-${place}`, "data-id": item.id, "aria-selected": "false" }, ...parts);
      }),
    );
    list.hidden = !items.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    status.textContent = items.length ? "" : nothing;
    mark(options().find(({ dataset }) => dataset.id === chosen) ?? options()[0]);
  }

  function close() {
    asking.abort();
    clearTimeout(timer);
    isWaiting = false;
    submitter = undefined;
    list.hidden = true;
    status.textContent = "";
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(option) {
    const { id } = option.dataset;
    if (![...select.options].some(({ value }) => value === id)) {
      select.add(new Option(option.firstChild.textContent, id));
    }
    select.value = id;
    input.value = name();
    close();
    select.dispatchEvent(new Event("change", { bubbles: true }));
    more();
  }

  // A filter takes several: once one is chosen, there is room for another.
  function more() {
    const others = [...field.parentElement.querySelectorAll(`[data-many] select[name="${CSS.escape(select.name)}"]`)];
    if (field.hasAttribute("data-many") && others.every(({ value }) => value)) {
      const copy = field.cloneNode(true);
      const again = element("select", { name: select.name, id: `${input.id}-${made}` });
      again.append(...known.map(({ id, label: words }) => new Option(words, id)));
      copy.replaceChildren(element("label", { for: again.id }, field.dataset.many), again);
      field.after(copy);
      upgrade(copy);
    }
  }

  async function ask(text) {
    const { signal } = asking;
    const address = new URL(finder);
    address.searchParams.set("kind", kind);
    address.searchParams.set("search", text);
    try {
      const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
      const groups = answer.ok && !answer.redirected ? await answer.json() : null;
      if (!signal.aborted) {
        show(groups?.flatMap(({ items }) => items) ?? [], "");
        status.textContent = groups ? status.textContent : failed;
      }
    } catch {
      if (!signal.aborted) {
        show([], "");
        status.textContent = failed;
      }
    }
    if (!signal.aborted) {
      const pressed = submitter;
      const isFound = !list.hidden;
      isWaiting = false;
      if (pressed || document.activeElement !== input) {
        settle();
      }
      if (pressed && isFound) {
        select.form.requestSubmit(pressed);
      }
    }
  }

  // Leaving the line chooses what it has marked, as the ARIA Authoring Practices have it for automatic selection. Else a
  // name that was typed and not confirmed would be lost, or clear what was there.
  function settle() {
    const text = input.value.trim();
    if (text && text !== name() && !list.hidden) {
      choose(active());
      return;
    }
    const isUnknown = text && text !== name();
    close();
    if (!text) {
      select.value = "";
    }
    input.value = name();
    status.textContent = isUnknown ? `“${text}”: ${nothing}` : "";
  }

  function look() {
    close();
    asking = new AbortController();
    const text = input.value.trim();
    if (text && text !== name()) {
      isWaiting = true;
      timer = setTimeout(ask, WAIT, text);
    } else {
      show(known, select.value);
    }
  }

  input.addEventListener("input", look);
  input.addEventListener("click", () => list.hidden && look());
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.isComposing) {
      return;
    }
    if (event.key in steps) {
      event.preventDefault();
      if (list.hidden) {
        look();
      } else {
        const all = options();
        mark(all.at((all.indexOf(active()) + steps[event.key]) % all.length));
      }
    } else if (event.key === "Enter" && !list.hidden) {
      event.preventDefault();
      choose(active());
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
      input.value = name();
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the line keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) {
      choose(option);
    }
  });
  input.addEventListener("blur", () => {
    if (!isWaiting) {
      settle();
    }
  });
  select.form.addEventListener("submit", (event) => {
    if (isWaiting) {
      event.preventDefault(); // it is sent with the answer
      submitter = event.submitter;
    }
  });
}

for (const field of document.querySelectorAll("[data-picker]")) {
  upgrade(field);
}
