// The hash table: who keeps how much, what is still to be moved, and what it survives.

import { Table, card, h, nodeLink, tag, tiles } from "./dom.js";
import { bytes, count, some } from "./format.js";

export function view() {
  const top = tiles({
    servers: "servers", keys: "keys and copies", bytes: "kept", leads: "most led / mean",
    balance: "most kept / mean", moving: "shards to move", lost: "without majority",
  });
  const table = new Table("dht", [
    { name: "node", of: (row) => nodeLink(row.overlay, row.node) },
    { name: "zone", of: (row) => row.zone },
    { name: "serves", of: (row) => (row.serves ? tag(row.storage, row.storage === "sqlite" ? "good" : "") : tag("no")) },
    { name: "shards, led and kept", of: (row) => bar(row) },
    { name: "shards", num: true, of: (row) => count(row.shards) },
    { name: "leads", num: true, of: (row) => count(row.leads) },
    { name: "keys", num: true, of: (row) => count(row.keys) },
    { name: "bytes", num: true, of: (row) => bytes(row.bytes) },
    { name: "to move", num: true, of: (row) => (row.moving ? h("span", { class: "warn" }, count(row.moving)) : "0") },
    { name: "operations", num: true, of: (row) => count(row.served) },
    { name: "refused", num: true, of: (row) => count(row.refused) },
    { name: "unknown", num: true, of: (row) => count(row.unknown) },
  ], { empty: "no node of this machine has to do with the hash table" });
  const says = h("div", { class: "body soft" });
  const box = card("Balance", table.element);
  const survival = card("What it survives", says);
  return {
    element: h("div", {}, h("h1", {}, "Hash table"), top.element, survival.element, box.element),
    update(model) {
      const nodes = Object.values(model.nodes).sort((a, b) => (a.node < b.node ? -1 : 1));
      const servers = nodes.filter((one) => one.serves);
      const sum = (field) => servers.reduce((total, one) => total + one[field], 0);
      const ratio = (field) => (sum(field) ? (Math.max(...servers.map((one) => one[field])) / (sum(field) / servers.length)).toFixed(2) : "–");
      top.set("servers", count(servers.length));
      top.set("keys", count(sum("keys")));
      top.set("bytes", bytes(sum("bytes")));
      top.set("leads", ratio("leads"));
      top.set("balance", ratio("shards"));
      top.set("moving", count(sum("moving")), sum("moving") ? "warn" : "");
      top.set("lost", count(sum("without_majority")), sum("without_majority") ? "bad" : "");
      const most = Math.max(1, ...nodes.map((one) => one.shards));
      table.update(nodes.map((one) => ({
        key: one.node, node: one.node, overlay: one.overlay, zone: one.zone, serves: one.serves, storage: one.storage, shards: one.shards,
        leads: one.leads, keys: one.keys, bytes: one.bytes, moving: one.moving, most, served: one.counts.served, refused: one.counts.refused, unknown: one.counts.unknown,
      })));
      const zones = Object.assign({}, ...nodes.map((one) => one.storage_zones ?? {}));
      const listed = Object.entries(zones).sort().map(([zone, n]) => `${zone} (${some(n, "slice")})`);
      box.note.textContent = listed.length ? `storage zones: ${listed.join(", ")}` : "";
      const said = [...new Set(nodes.filter((one) => one.shards).map((one) => one.survives.says))];
      survival.element.hidden = !said.length;
      says.replaceChildren(...said.map((text) => h("div", {}, `${text[0].toUpperCase()}${text.slice(1)}.`)));
    },
  };
}

function bar(row) {
  const kept = h("i");
  const led = h("i");
  kept.style.width = `${(100 * row.shards) / row.most}%`;
  led.style.width = `${(100 * row.leads) / row.most}%`;
  return h("span", { class: "bar", title: `leads ${row.leads} of ${row.shards}` }, kept, led);
}
