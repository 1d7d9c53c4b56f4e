// One node: its state, its links, and every counter that it keeps.

import { Table, card, facts, h, nodeLink, tag, toast } from "./dom.js";
import { bytes, count, milliseconds, offset, ppm, rate, some, span } from "./format.js";

export function view({ overlay, name, session }) {
  const state = h("div", { class: "body" });
  const attributes = h("div", { class: "body" });
  const links = new Table("links", [
    { name: "link to", of: (row) => nodeLink(overlay, row.peer) },
    { name: "state", of: (row) => tag(row.state, row.state === "open" ? "good" : "warn") },
    { name: "why", of: (row) => row.kinds || "–" },
    { name: "round trip", num: true, of: (row) => milliseconds(row.trip) },
    { name: "waiting", num: true, of: (row) => bytes(row.waiting) },
    { name: "bulk waiting", num: true, of: (row) => bytes(row.bulk) },
    { name: "frames from it", num: true, of: (row) => count(row.frames) },
    { name: "opened", num: true, of: (row) => count(row.opened) },
    { name: "last failure", wide: true, of: (row) => row.reason || "–" },
  ], { empty: "no links" });
  const losses = new Table("losses", [
    { name: "dropped or refused", of: (row) => row.what },
    { name: "where", of: (row) => row.where },
    { name: "count", num: true, of: (row) => h("span", { class: "warn" }, count(row.count)) },
  ], { empty: "nothing was dropped or refused" });
  const published = new Table("published", [
    { name: "topic", mono: true, of: (row) => row.topic },
    { name: "part", of: (row) => tag(row.part) },
    { name: "publisher", of: (row) => row.publisher },
    { name: "mode", of: (row) => row.mode },
    { name: "messages", num: true, of: (row) => count(row.messages) },
    { name: "bytes", num: true, of: (row) => bytes(row.bytes) },
    { name: "behind", num: true, of: (row) => count(row.behind) },
  ], { empty: "it neither publishes nor gets a topic" });
  const counters = h("div");
  const zeros = h("input", { type: "checkbox", onchange: () => { said = ""; if (last) showCounters(last); } });
  const title = h("h1", {}, name);
  const banner = h("div", { class: "banner", hidden: true });
  const cards = {
    state: card("State", state), attributes: card("Attributes", attributes), links: card("Links", links.element),
    losses: card("Losses", losses.element), topics: card("Topics", published.element), counters: card("Counters", counters),
  };
  cards.counters.head.append(h("label", { class: "push" }, zeros, "zeros, too"));
  if (session?.actions) cards.state.head.append(...actions(overlay, name, session));
  let last = null;
  let said = "";
  const before = new Map();

  function showCounters(model) {
    const status = model.status;
    if (!status) return;
    const now = performance.now();
    const groups = { driver: status.driver.counters, control: status.control, ...status.protocols };
    const text = JSON.stringify(groups);
    if (text === said) return;
    said = text;
    const open = new Set([...counters.querySelectorAll("details[open]")].map((one) => one.dataset.group));
    const first = !counters.firstChild;
    counters.replaceChildren(...Object.entries(groups).map(([group, counts]) => {
      const entries = Object.entries(counts).filter(([, n]) => zeros.checked || n);
      const rows = entries.map(([field, n]) => {
        const key = `${group}/${field}`;
        const old = before.get(key);
        if (!old || (n !== old.n && now - old.now > 700)) before.set(key, { n, now, rate: old ? (1000 * (n - old.n)) / (now - old.now) : 0 });
        const speed = before.get(key).rate;
        return h("div", { class: n ? undefined : "zero", "data-count": key }, h("span", {}, field.replaceAll("_", " ")),
          h("span", {}, h("b", {}, count(n)), speed > 0.05 && now - before.get(key).now < 4000 ? h("em", {}, `+${rate(speed)}/s`) : ""));
      });
      return h("details", { "data-group": group, open: first ? entries.length > 0 : open.has(group) },
        h("summary", {}, group, h("span", { class: "soft" }, ` · ${entries.length ? some(entries.length, "counter") : "all zero"}`)), h("div", { class: "counts" }, rows));
    }));
  }

  return {
    element: h("div", {}, title, banner, h("div", { class: "columns" }, cards.state.element, h("div", {}, cards.attributes.element, cards.losses.element)), cards.links.element, cards.topics.element, cards.counters.element),
    update(model) {
      last = model;
      banner.hidden = !(model.gone || model.silent);
      banner.textContent = model.gone ? `${name} does not run on this machine any more, or its page is at the machine where it runs.` : `${name} does not answer: it is stopped, or stuck. What follows is what it told last.`;
      const { status } = model;
      if (model.gone || !status) return;
      const { driver } = status;
      const clock = model.time ?? {};
      const table = model["dht-stats"] ?? {};
      const colony = model.colony ?? {};
      const resources = model.resources?.resources ?? [];
      title.replaceChildren(name, h("small", {}, `zone ${status.zone || "–"} of ${overlay}`));
      state.replaceChildren(facts([
        ["member", h("span", { "data-fact": "state" }, tag(model.member.state ?? "–", model.member.state === "alive" ? "good" : "warn"))],
        ["part", parts(model)],
        ["security", status.insecure ? tag("insecure", "warn") : tag("keys", "good")],
        ["address", h("span", { class: "mono" }, driver.endpoints.join(", "))],
        ["place", h("span", { class: "mono" }, (model.member.vid ?? "–").slice(0, 8))],
        ["up", `${span(driver.uptime)}, process ${status.pid}`],
        ["time", clock.synchronised ? `${offset(clock.offset, clock.error)}, drift ${ppm(clock.drift)}, stratum ${clock.stratum}, ${clock.root === name ? "it is the root" : `from ${clock.root}`}` : "no time yet"],
        ["hash table", table.serves ? `${some(table.shards, "shard")}, leads ${count(table.leads)}, ${some(table.keys, "key")}, ${bytes(table.bytes)}${table.moving ? `, ${count(table.moving)} to move` : ""}` : "keeps no keys"],
        colony.leads || colony.leader ? ["colony", `${colony.leads ? "broker" : "computer"}, ${colony.leader ? `follows ${colony.path.join(" → ")}` : "a root"}, ${some(colony.individuals.length, "individual")}`] : null,
        resources.length ? ["resources", resources.map((one) => one.name).join(", ")] : null,
        ["traces", model.trace ? `${model.trace.level}${model.trace.rows ? `, ${some(model.trace.rows, "row")}, ${count(model.trace.dropped)} dropped` : ""}` : "–"],
      ]));
      const told = Object.entries(model.member.attributes ?? {}).filter(([key]) => key !== "management");
      attributes.replaceChildren(told.length ? facts(told.map(([key, value]) => [key, h("span", { class: "mono" }, String(value))])) : h("span", { class: "soft" }, "It tells none about itself."));
      const why = Object.fromEntries((model.topology?.links ?? []).map((one) => [one.peer, one.kinds.join(", ")]));
      const rows = Object.entries(driver.links).map(([peer, link]) => ({ key: peer, peer, state: link.state, kinds: why[peer], trip: model.round_trips[peer],
        waiting: link.waiting, bulk: link.bulk_waiting, frames: driver.sessions[peer], opened: link.opened, reason: link.reason }));
      links.update(rows);
      cards.links.note.textContent = `${count(rows.length)}, of them ${count(model.topology?.links.length ?? 0)} in the zone's topology`;
      losses.update(lossesOf(status));
      const topics = model.topics ?? { published: [], arriving: [] };
      published.update([...topics.published.map((one) => ({ ...stream(one), part: "publishes", behind: Math.max(0, ...one.subscribers.map((other) => other.behind ?? 0)) })),
        ...topics.arriving.map((one) => ({ ...stream(one), part: one.relayed ? "relays" : "gets", behind: one.behind }))]);
      showCounters(model);
    },
  };
}

const stream = (one) => ({ key: `${one.topic}/${one.publisher}/${one.stream}`, topic: one.topic, publisher: one.publisher, mode: one.mode, messages: one.messages, bytes: one.bytes });

function parts(model) {
  const found = [model.glance?.delegate && tag("delegate", "gold"), model.glance?.gateway_of && tag(`gateway of ${some(model.glance.gateway_of, "topic")}`),
    model.broker && tag("broker"), model.bdn && tag("BDN")].filter(Boolean);
  return h("span", {}, found.length ? found : "a plain member");
}

const LOSS = /drop|refus|lost|late|stray|strang|denied|declin|expired|gap|skipped|surplus|limited|overload|undeliver|not_|not |fail|silent|unanswered|forbidden|ignored|too_|over_|busy|forgotten|full|cut|bad_|odd|crowd|turned-away|too-slow|malformed|foreign|unknown/;

function lossesOf(status) {
  const rows = Object.entries(status.driver.refusals).map(([what, n]) => ({ key: `refused/${what}`, what, where: "refused at the edge", count: n }));
  const groups = { driver: status.driver.counters, "control socket": status.control, ...status.protocols };
  for (const [where, counts] of Object.entries(groups)) {
    for (const [what, n] of Object.entries(counts)) if (n && LOSS.test(what)) rows.push({ key: `${where}/${what}`, what: what.replaceAll("_", " "), where, count: n });
  }
  if (status.events_dropped) rows.push({ key: "events", what: "events read too slowly", where: "application", count: status.events_dropped });
  return rows.sort((a, b) => b.count - a.count);
}

function actions(overlay, name, session) {
  const act = async (action) => {
    const answer = await fetch("/act", { method: "POST", headers: { "X-Overlay-Action": session.key, "Content-Type": "application/json" }, body: JSON.stringify({ overlay, node: name, ...action }) });
    toast(answer.ok ? (await answer.json()).done : await answer.text());
  };
  const level = h("select", { "aria-label": "traces", onchange: () => act({ do: "trace", level: level.value }) },
    h("option", { value: "", disabled: true, selected: true }, "record…"), ["off", "delivery", "messages", "all"].map((one) => h("option", { value: one }, one)));
  level.classList.add("push");
  return [level, h("button", { type: "button", class: "danger", onclick: () => { if (confirm(`Let ${name} leave its zone and stop?`)) act({ do: "leave" }); } }, "Leave")];
}
