// What every section uses: the data, words for numbers, tables that sort, and nodes as links.
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("main");
let theRun = DATA.runs && DATA.runs.length ? DATA.runs[0].name : "";

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.onclick = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// -- numbers for people -------------------------------------------------------------------------

function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
}

function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return (value / (unit === 1e4 ? 1e3 : unit)).toPrecision(3) + " " + name;
  }
  return Number.isInteger(value) ? value.toLocaleString("en") : String(+value.toPrecision(3));
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const told = short(value);
  return told + (/[GMk]$/.test(told) ? "B" : " B");
}

function micros(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " s";
  if (size >= 1e3) return (value / 1e3).toPrecision(3) + " ms";
  return Math.round(value) + " µs";
}

function seconds(value) {
  return value === null || value === undefined ? "–" : micros(value * 1e6);
}

function millis(value) {
  return value === null || value === undefined ? "–" : micros(value * 1e3);
}

function percent(value) {
  return value === null || value === undefined ? "–" : (100 * value).toPrecision(3) + " %";
}

function since(at) {
  return seconds((at - run().begin) / 1e6);
}

// -- the data -----------------------------------------------------------------------------------

function run() {
  return DATA.runs.find((one) => one.name === theRun) || { begin: 0, end: 0, zones: [], nodes: 0 };
}

// The rows of a table that belong to the run that is shown, as objects.
function rowsOf(name) {
  const table = DATA.tables[name];
  if (!table) return [];
  const all = table.rows.map((row) =>
    Object.fromEntries(table.columns.map((column, place) => [column, row[place]])));
  return all.filter((row) => row.run === theRun);
}

function total(rows, column) {
  return rows.reduce((sum, row) => sum + (row[column] || 0), 0);
}

// -- tables -------------------------------------------------------------------------------------

// columns: [key, heading, form, options]; a form makes text or an element of a value and its row.
function table(name, columns, rows = rowsOf(name)) {
  const body = make("tbody");
  const head = make("tr");
  const isNumber = (key) => rows.some((row) => typeof row[key] === "number");
  let sorted = null;
  function fill() {
    body.replaceChildren(...rows.map((row) => make("tr", { "data-names": namesIn(row) },
      ...columns.map(([key, , form, options = {}]) => {
        const value = row[key];
        const shown = form ? form(value, row) : value === null ? "–" : String(value);
        const classes = [isNumber(key) ? "n" : "", options.wide ? "wide" : "",
          options.trouble ? (value ? "trouble" : "zero") : ""];
        return make("td", { class: classes.join(" ").trim() || null }, shown);
      }))));
    markRows();
  }
  columns.forEach(([key, heading], place) => {
    const cell = make("th", { class: isNumber(key) ? "n" : null, scope: "col", tabindex: 0 }, heading);
    cell.onclick = () => {
      const up = sorted === place ? head.children[place].ariaSort !== "ascending" : !isNumber(key);
      [...head.children].forEach((one) => one.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      sorted = place;
      rows = [...rows].sort((a, b) => compare(a[key], b[key]) * (up ? 1 : -1));
      fill();
    };
    cell.onkeydown = (event) => { if (event.key === "Enter") cell.onclick(); };
    head.append(cell);
  });
  fill();
  const whole = DATA.tables[name] ? DATA.tables[name].totals[theRun] || 0 : rows.length;
  const file = make("a", { href: `tables/${name}.csv` }, `tables/${name}.csv`);
  return make("div", {},
    make("div", { class: "scroll" }, make("table", { id: `table-${name}` },
      make("thead", {}, head), body)),
    make("p", { class: "more" }, rows.length < whole ? `${count(rows.length)} of ${count(whole)} rows; all are in ` : `${count(rows.length)} row${rows.length === 1 ? "" : "s"}, also in `, file));
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// -- nodes are links: one click shows all that is known of a node, and marks it everywhere --------

const NAMED = ["node", "origin", "subscriber", "source", "target", "parent", "slowest_from",
  "slowest_to", "busiest", "subject", "broker"];
let marked = "";

function namesIn(row) {
  const names = NAMED.map((key) => row[key]).filter((name) => typeof name === "string");
  return JSON.stringify(names.flatMap((name) => name.split(" → ")));
}

function nodeLink(name) {
  if (name === null || name === undefined) return "–";
  return make("a", { class: "node", href: "#node=" + encodeURIComponent(name) }, name);
}

function nodePath(path) {
  if (!path) return "–";
  const parts = path.split(" → ").flatMap((name, place) => place ? [" → ", nodeLink(name)] : [nodeLink(name)]);
  return make("span", {}, ...parts);
}

function markRows() {
  for (const row of document.querySelectorAll("tr[data-names]")) {
    row.classList.toggle("marked", marked !== "" && JSON.parse(row.dataset.names).includes(marked));
  }
}
