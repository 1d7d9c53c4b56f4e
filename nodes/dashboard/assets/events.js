// The log of events, the newest first, with filters.

import { card, h, nodeLink, search } from "./dom.js";
import { clock, count } from "./format.js";

const KINDS = {
  all: () => true,
  members: (event) => event.startsWith("member") || event.startsWith("attributes"),
  zones: (event) => event.startsWith("zone") || event.startsWith("delegate"),
  links: (event) => event.startsWith("link"),
  topics: (event) => /^(subscri|publish|stream|gap)/.test(event),
};
const SHOWN = 300;

export function view() {
  const list = h("ul", { class: "log", "data-table": "events" });
  const none = h("div", { class: "empty" }, "nothing has happened since the dashboard was started");
  const box = card("Events", list, none);
  const filter = { text: "", kind: "all", zone: "", paused: false };
  let last = null;
  const show = () => { if (last && !filter.paused) render(); };
  const zone = h("select", { "aria-label": "zone", onchange: (e) => { filter.zone = e.target.value; show(); } }, h("option", { value: "" }, "every zone"));
  const kind = h("select", { "aria-label": "kind", onchange: (e) => { filter.kind = e.target.value; show(); } },
    Object.keys(KINDS).map((name) => h("option", { value: name }, name === "all" ? "every kind" : name)));
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
    filter.paused = !filter.paused;
    pause.textContent = filter.paused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(filter.paused));
    show();
  } }, "Pause");
  const text = search("filter events", (words) => { filter.text = words; show(); });
  text.classList.add("push");
  box.head.append(text, kind, zone, pause);

  function render() {
    const all = Object.entries(last.events).map(([number, event]) => ({ number: Number(number), ...event })).sort((a, b) => b.number - a.number);
    const zones = [...new Set(all.map((event) => event.zone))].sort();
    if (zone.options.length !== zones.length + 1) {
      zone.replaceChildren(h("option", { value: "" }, "every zone"), ...zones.map((name) => h("option", { value: name }, name)));
      zone.value = filter.zone;
    }
    const found = all.filter((event) => KINDS[filter.kind](event.event) && (!filter.zone || event.zone === filter.zone)
      && `${event.node} ${event.zone} ${event.says} ${event.event}`.toLowerCase().includes(filter.text));
    list.replaceChildren(...found.slice(0, SHOWN).map((event) => h("li", { "data-event": event.event },
      h("time", { class: "mono" }, clock(event.at)), h("span", { class: "who" }, nodeLink(event.overlay, event.node)),
      h("span", { class: "who soft" }, event.zone), h("span", { class: `says${/failed|lost|gap|slow/.test(event.event) ? " bad" : ""}` }, event.says))));
    none.hidden = all.length > 0;
    box.note.textContent = `${count(found.length)} of ${count(last.count)}`;
  }

  return {
    element: h("div", {}, h("h1", {}, "Events"), box.element),
    update(model) { last = model; show(); },
  };
}
