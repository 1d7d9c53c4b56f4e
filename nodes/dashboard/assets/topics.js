// Topics: who publishes and subscribes, how fast, and who is behind.

import { Table, card, h, nodeLink, search, spark, tag, tiles } from "./dom.js";
import { bytes, count, rate, some } from "./format.js";

export function view() {
  const top = tiles({ topics: "topics", rate: "messages each second", bytes: "bytes each second", behind: "behind, the slowest" });
  const history = new Map();
  const table = new Table("topics", [
    { name: "topic", mono: true, of: (row) => row.topic.split("/").flatMap((part, i) => (i ? ["/", h("wbr"), part] : [part])) },
    { name: "mode", of: (row) => row.modes.map((mode) => tag(mode)) },
    { name: "publishers", wide: true, of: (row) => people(row.overlay, row.publishers) },
    { name: "subscribers", wide: true, of: (row) => people(row.overlay, row.subscribers) },
    { name: "messages", num: true, of: (row) => count(row.messages) },
    { name: "per s", num: true, of: (row) => rate(row.per_second) },
    { name: "last minute", of: (row) => spark(row.history) },
    { name: "bytes/s", num: true, of: (row) => bytes(row.bytes_per_second) },
    { name: "behind", num: true, of: (row) => h("span", { class: row.behind > MANY ? "warn" : undefined }, count(row.behind)) },
    { name: "gateways", of: (row) => (row.gateways.length ? row.gateways.map((text) => h("div", { class: "nowrap" }, text)) : "–") },
  ], { empty: "no topic is published or read by the nodes of this machine" });
  let wanted = "";
  let last = [];
  const filtered = () => table.update(last.filter((row) => row.topic.toLowerCase().includes(wanted)));
  const box = card("Topics", table.element);
  box.head.append(search("filter topics", (text) => { wanted = text; filtered(); }));
  box.head.lastChild.classList.add("push");
  let looked = 0;
  return {
    element: h("div", {}, h("h1", {}, "Topics"), top.element, box.element),
    update(model) {
      const now = performance.now();
      const beat = now - looked > 900;
      if (beat) looked = now;
      last = Object.entries(model.overlays).flatMap(([overlay, topics]) => Object.entries(topics).map(([topic, facts]) => {
        const key = `${overlay}/${topic}`;
        const points = history.get(key) ?? [];
        if (beat) points.push(facts.per_second ?? 0);
        if (points.length > 60) points.shift();
        history.set(key, points);
        return {
          key, overlay, topic, modes: Object.keys(facts.modes), publishers: facts.publishers, subscribers: facts.subscribers,
          messages: facts.messages, per_second: facts.per_second, bytes_per_second: facts.bytes_per_second, behind: facts.behind,
          gateways: Object.entries(facts.gateways).map(([zone, name]) => `${zone}: ${name}`), history: [...points],
        };
      })).sort((a, b) => (a.key < b.key ? -1 : 1));
      const sum = (field) => last.reduce((total, row) => total + (row[field] ?? 0), 0);
      top.set("topics", count(last.length));
      top.set("rate", rate(sum("per_second")));
      top.set("bytes", bytes(sum("bytes_per_second")));
      const behind = Math.max(0, ...last.map((row) => row.behind));
      top.set("behind", some(behind, "message"), behind > 1000 ? "warn" : "");
      box.note.textContent = `as ${some(Object.keys(model.nodes).length, "node")} of this machine see them`;
      filtered();
    },
  };
}

const SHOWN = 8;
const MANY = 100; // messages: less is on its way

function people(overlay, parts) {
  const all = Object.entries(parts);
  if (!all.length) return "–";
  const shown = all.slice(0, SHOWN).map(([name, part], i) => [
    i ? ", " : "", name.includes(" for ") ? name : nodeLink(overlay, name), part.behind ? h("span", { class: part.behind > MANY ? "warn" : "soft" }, ` (${count(part.behind)} behind)`) : "",
  ]);
  return h("span", {}, shown.flat(), all.length > SHOWN ? ` and ${count(all.length - SHOWN)} more` : "");
}
