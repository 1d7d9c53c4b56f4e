// Zones as rings, and the same as tables.

import { Table, card, h, nodeLink, search, tag, tiles } from "./dom.js";
import { bytes, count, some } from "./format.js";
import { heightFor } from "./layout.js";
import { Rings } from "./rings.js";

const WINDOW = 6000; // ms over which traffic is taken

export function view() {
  const top = tiles({
    members: "members", zones: "zones", watched: "watched here", traffic: "sent per second",
    waiting: "in queues", dropped: "dropped", refused: "refused",
  });
  const canvas = h("canvas", { role: "img", "aria-label": "Zones as rings; the tables below tell the same" });
  const tip = h("div", { class: "tip", hidden: true });
  const stage = h("div", { class: "stage" }, canvas, tip);
  const rings = card("Zones", stage);
  rings.head.append(legend());
  const rings2d = new Rings(canvas, {
    onhover: (member, x, y) => point(tip, stage, member, x, y),
    onpick: (member) => { location.hash = `#/node/${encodeURIComponent(member.overlay)}/${encodeURIComponent(member.name)}`; },
  });

  const zones = new Table("zones", [
    { name: "zone", of: (row) => row.title },
    { name: "members", num: true, of: (row) => count(row.size) },
    { name: "delegates", wide: true, of: (row) => row.delegates.join(", ") || "none at the moment" },
    { name: "supervisors", of: (row) => row.supervisors.join(", ") || "–" },
    { name: "roles", of: (row) => row.summary || "–" },
  ], { empty: "no zone is known yet" });
  const members = new Table("members", [
    { name: "member", of: (row) => (row.watched ? nodeLink(row.overlay, row.name) : row.name) },
    { name: "zone", of: (row) => row.zone },
    { name: "state", of: (row) => state(row) },
    { name: "part", of: (row) => h("span", {}, row.delegate ? tag("delegate", "gold") : "", row.gateway ? tag(`gateway of ${row.gateway}`) : "") },
    { name: "links", num: true, of: (row) => (row.watched ? count(row.links) : "–") },
    { name: "sent", num: true, of: (row) => (row.watched ? bytes(row.sent) : "–") },
    { name: "received", num: true, of: (row) => (row.watched ? bytes(row.received) : "–") },
    { name: "dropped", num: true, of: (row) => problem(row, row.dropped) },
    { name: "refused", num: true, of: (row) => problem(row, row.refused) },
  ], { empty: "no member is known yet" });
  let wanted = "";
  let last = null;
  const memberCard = card("Members", members.element);
  memberCard.head.append(search("filter members", (text) => { wanted = text; if (last) showMembers(last); }));
  memberCard.head.lastChild.classList.add("push");
  const zoneCard = card("Zone table", zones.element);
  const banner = h("div", { class: "banner", hidden: true });

  function showMembers(shown) {
    const rows = shown.flatMap((zone) => zone.members).map((one) => ({
      key: one.key, name: one.name, overlay: one.overlay, zone: one.zoneName, state: one.state,
      watched: one.watched, silent: one.silent, delegate: one.delegate, gateway: one.gateway,
      links: Object.keys(one.links).length, sent: one.sent, received: one.received,
      dropped: one.dropped, refused: one.refused,
    }));
    const found = wanted ? rows.filter((row) => `${row.name} ${row.zone} ${row.state}`.toLowerCase().includes(wanted)) : rows;
    members.update(found);
    memberCard.note.textContent = wanted ? `${count(found.length)} of ${count(rows.length)}` : count(rows.length);
  }

  const traffic = { of: new Map(), sum: 0, looks: [] };
  return {
    element: h("div", {}, h("h1", { class: "sr" }, "The overlay"), banner, top.element, rings.element, zoneCard.element, memberCard.element),
    end: () => rings2d.end(),
    update(model) {
      const shown = zonesOf(model);
      last = shown;
      canvas.style.height = `${heightFor(shown, canvas.clientWidth)}px`;
      rings2d.show(shown);
      zones.update(shown.map(({ key, title, size, delegates, supervisors, summary }) => ({ key, title, size, delegates, supervisors, summary })));
      showMembers(shown);
      const nodes = Object.values(model.overlays).flatMap((one) => Object.values(one.nodes ?? {}));
      const sum = (field) => nodes.reduce((total, node) => total + (node[field] ?? 0), 0);
      top.set("members", count(shown.reduce((total, zone) => total + zone.members.length, 0)));
      top.set("zones", count(shown.length));
      top.set("watched", count(model.watched));
      top.set("traffic", speed(traffic, model.overlays));
      top.set("waiting", bytes(sum("waiting")));
      top.set("dropped", count(sum("dropped")), sum("dropped") ? "warn" : "");
      top.set("refused", count(sum("refused")), sum("refused") ? "warn" : "");
      zoneCard.note.textContent = some(shown.length, "zone");
      const silent = nodes.filter((node) => node.silent).length;
      banner.hidden = !(silent || !model.watched);
      banner.textContent = silent ? `${some(silent, "node")} of this machine do not answer: they are stopped, or stuck.`
        : "No node runs on this machine: start one with overlay peer.";
    },
  };
}

function zonesOf(model) {
  const overlays = Object.entries(model.overlays);
  const shown = [];
  for (const [overlay, facts] of overlays) {
    const nodes = facts.nodes ?? {};
    const home = {};
    for (const [zone, { members }] of Object.entries(facts.zones)) for (const name of Object.keys(members)) home[name] ??= zone;
    for (const [name, zone] of Object.entries(facts.zones).sort(([a], [b]) => (a < b ? -1 : 1))) {
      const key = (member) => `${overlay}/${home[member] ?? name}/${member}`;
      const members = Object.entries(zone.members).sort(([a, one], [b, other]) => (one.p ?? 0) - (other.p ?? 0) || (a < b ? -1 : 1)).map(([member, { s }]) => {
        const node = nodes[member];
        return {
          key: `${overlay}/${name}/${member}`, name: member, overlay, zoneName: name, state: s,
          watched: Boolean(node), silent: node?.silent ?? false, delegate: member in zone.delegates,
          gateway: node?.gateway_of ?? 0, sent: node?.sent ?? 0, received: node?.received ?? 0,
          dropped: node?.dropped ?? 0, refused: node?.refused ?? 0,
          links: Object.fromEntries(Object.entries(node?.links ?? {}).map(([peer, kinds]) => [`${overlay}/${name}/${peer}`, kinds])),
          far: Object.keys(node?.far ?? {}).filter((peer) => peer in home).map(key),
        };
      });
      shown.push({
        key: `${overlay}/${name}`, title: overlays.length > 1 ? `${name} of ${overlay}` : name, size: zone.size || members.length, members,
        note: some(members.length, "member"), delegates: Object.keys(zone.delegates), supervisors: Object.keys(zone.supervisors), summary: zone.summary,
      });
    }
  }
  return shown;
}

// What all nodes sent in the last seconds; one that is seen for the first time sent it before.
function speed(traffic, overlays) {
  const now = performance.now();
  for (const [overlay, { nodes }] of Object.entries(overlays)) {
    for (const [name, { sent }] of Object.entries(nodes ?? {})) {
      const key = `${overlay}/${name}`;
      const before = traffic.of.get(key);
      if (before && sent > before) traffic.sum += sent - before;
      if (sent) traffic.of.set(key, sent);
    }
  }
  const { looks } = traffic;
  looks.push({ now, sum: traffic.sum });
  while (looks.length > 2 && looks[1].now < now - WINDOW) looks.shift();
  const passed = now - looks[0].now;
  return passed < 1800 ? "–" : bytes((1000 * (traffic.sum - looks[0].sum)) / passed);
}

function state(row) {
  if (row.silent) return tag("silent", "warn");
  if (row.state === "told") return tag("in another zone");
  return tag(row.state, row.state === "alive" ? "good" : "warn");
}

const problem = (row, n) => (!row.watched ? "–" : n ? h("span", { class: "warn" }, count(n)) : "0");

function legend() {
  const line = (name, text) => h("span", {}, styled(h("i"), name), text);
  return h("div", { class: "legend push" },
    line("ring", "ring"), line("structured", "structured"), line("random", "random"), line("interest", "interest"), line("far", "between zones"),
    h("span", {}, styled(h("i", { class: "dot" }), "gold"), "delegate"), h("span", {}, styled(h("i", { class: "diamond" }), "accent"), "gateway"));
}

function styled(element, name) {
  element.style.color = `var(--${name})`;
  return element;
}

function point(tip, stage, member, x, y) {
  tip.hidden = !member;
  if (!member) return;
  const links = Object.keys(member.links).length;
  const about = member.watched ? `${some(links, "link")}, sent ${bytes(member.sent)}, dropped ${count(member.dropped)}` : "not on this machine";
  tip.replaceChildren(h("b", {}, member.name), `zone ${member.zoneName}, ${member.silent ? "silent" : member.state === "told" ? "alive when last told" : member.state}`,
    h("br"), [member.delegate && "delegate", member.gateway && `gateway of ${member.gateway}`].filter(Boolean).join(", "), member.delegate || member.gateway ? h("br") : "", about);
  const left = x + 16 + tip.offsetWidth > stage.clientWidth ? x - tip.offsetWidth - 12 : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, stage.clientHeight - tip.offsetHeight - 6))}px`;
}
