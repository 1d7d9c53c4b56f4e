// Elements. What nodes tell becomes text, never markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(4).filter((one) => one !== undefined && one !== null && one !== false));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const tag = (text, mood) => h("span", { class: "tag", "data-mood": mood }, text);

export const nodeLink = (overlay, name) =>
  h("a", { href: `#/node/${encodeURIComponent(overlay)}/${encodeURIComponent(name)}` }, name);

export function card(title, ...rest) {
  const heading = h("h2", {}, title);
  const note = h("small");
  heading.append(note);
  const head = h("div", { class: "head" }, heading);
  const element = h("section", { class: "card" }, head, ...rest);
  return { element, head, note, add: (...more) => element.append(...more) };
}

export function tiles(names) {
  const element = h("div", { class: "tiles" });
  const values = {};
  for (const [key, label] of Object.entries(names)) {
    const value = h("b", { "data-tile": key }, "–");
    const tile = h("div", { class: "tile" }, value, h("span", {}, label));
    values[key] = { tile, value };
    element.append(tile);
  }
  return {
    element,
    set(key, text, mood = "") {
      const { tile, value } = values[key];
      if (value.textContent !== text) value.textContent = text;
      tile.dataset.mood = mood;
    },
  };
}

// A list of facts: pairs of a name and a text or an element.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

// A table whose rows stay where they are: only those that changed are made anew.
export class Table {
  constructor(name, columns, { most = 250, empty = "nothing yet" } = {}) {
    this.columns = columns;
    this.most = most;
    this.rows = new Map();
    this.body = h("tbody");
    const head = h("tr", {}, columns.map((one) => h("th", { class: one.num ? "num" : undefined, scope: "col" }, one.name)));
    this.table = h("table", { "data-table": name, hidden: true }, h("thead", {}, head), this.body);
    this.empty = h("div", { class: "empty" }, empty);
    this.more = h("div", { class: "more", hidden: true });
    this.element = h("div", { class: "scroll" }, this.table, this.empty, this.more);
  }

  update(rows) {
    const shown = rows.slice(0, this.most);
    this.empty.hidden = rows.length > 0;
    this.table.hidden = !rows.length;
    this.more.hidden = rows.length <= this.most;
    this.more.textContent = `the first ${this.most} of ${rows.length.toLocaleString("en")}: use the filter`;
    const seen = new Set();
    let place = this.body.firstChild;
    for (const row of shown) {
      seen.add(row.key);
      const said = JSON.stringify(row);
      let known = this.rows.get(row.key);
      if (!known || known.said !== said) {
        const element = h("tr", { "data-key": row.key }, this.columns.map((one) => this.cell(one, row)));
        if (known) {
          if (place === known.element) place = element;
          known.element.replaceWith(element);
        }
        known = { said, element };
        this.rows.set(row.key, known);
      }
      if (place === known.element) place = place.nextSibling;
      else this.body.insertBefore(known.element, place);
    }
    for (const [key, { element }] of this.rows) {
      if (!seen.has(key)) {
        element.remove();
        this.rows.delete(key);
      }
    }
  }

  cell(column, row) {
    const value = column.of(row);
    const classes = [column.num && "num", column.wide && "wide", column.mono && "mono"].filter(Boolean).join(" ");
    return h("td", { class: classes || undefined }, value ?? "–");
  }
}

export function search(placeholder, onchange) {
  return h("input", { type: "search", placeholder, "aria-label": placeholder, oninput: (e) => onchange(e.target.value.toLowerCase()) });
}

export function toast(text) {
  const element = document.getElementById("toast");
  element.textContent = text;
  element.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { element.hidden = true; }, 5000);
}

export function spark(values) {
  if (values.length < 2) values = [values[0] ?? 0, values[0] ?? 0];
  const most = Math.max(...values, 1e-9);
  const points = values.map((v, i) => `${i ? "L" : "M"}${((110 * i) / Math.max(values.length - 1, 1)).toFixed(1)} ${(22 - (20 * v) / most).toFixed(1)}`);
  return svg("svg", { class: "spark", viewBox: "0 0 110 24", role: "img", "aria-label": "the last minute" }, svg("path", { d: points.join("") }));
}
