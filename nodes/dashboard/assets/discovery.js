// Discovery: brokers, who lists them, and the candidates of each node's last search.

import { Table, card, h, nodeLink, tag } from "./dom.js";
import { count, milliseconds, some } from "./format.js";

export function view() {
  const listed = new Table("bdn", [
    { name: "broker", of: (row) => row.name },
    { name: "listed by", of: (row) => nodeLink(row.overlay, row.bdn) },
    { name: "address", mono: true, of: (row) => row.address },
    { name: "round trip", num: true, of: (row) => milliseconds(row.round_trip) },
    { name: "region", of: (row) => row.region || "–" },
    { name: "institution", of: (row) => row.institution || "–" },
    { name: "links", num: true, of: (row) => count(row.links) },
  ], { empty: "no BDN runs on this machine: overlay bdn" });
  const brokers = new Table("brokers", [
    { name: "broker", of: (row) => row.node },
    { name: "neighbours", wide: true, of: (row) => row.neighbours || "–" },
    { name: "requests", num: true, of: (row) => count(row.requests) },
    { name: "answered", num: true, of: (row) => count(row.answered) },
    { name: "pings", num: true, of: (row) => count(row.pings) },
    { name: "declined", num: true, of: (row) => count(row.declined) },
    { name: "rate limited", num: true, of: (row) => count(row.limited) },
  ], { empty: "no broker runs on this machine: overlay broker" });
  const candidates = new Table("candidates", [
    { name: "searcher", of: (row) => nodeLink(row.overlay, row.node) },
    { name: "broker", of: (row) => h("span", {}, row.name, " ", row.chosen ? tag("chosen", "good") : "") },
    { name: "address", mono: true, of: (row) => row.address },
    { name: "est. delay", num: true, of: (row) => `${milliseconds(row.delay)}${row.plausible ? "" : " (impossible)"}` },
    { name: "load weight", num: true, of: (row) => row.weight.toFixed(2) },
    { name: "ping p50", num: true, of: (row) => milliseconds(row.p50) },
    { name: "least", num: true, of: (row) => milliseconds(row.least) },
    { name: "jitter", num: true, of: (row) => milliseconds(row.jitter) },
    { name: "pings", num: true, of: (row) => `${row.answered}/${row.pinged}` },
    { name: "verdict", wide: true, of: (row) => row.verdict },
  ], { empty: "no node of this machine has searched for a broker" });
  const cards = [card("Candidates of the last searches", candidates.element), card("Listed brokers", listed.element), card("Brokers here", brokers.element)];
  return {
    element: h("div", {}, h("h1", {}, "Discovery"), ...cards.map((one) => one.element)),
    update(model) {
      const searches = Object.values(model.searches);
      candidates.update(searches.flatMap((one) => (one.candidates ?? []).map((candidate) => ({
        key: `${one.node}/${candidate.name}`, node: one.node, overlay: one.overlay, name: candidate.name, chosen: candidate.name === one.chosen,
        address: Array.isArray(candidate.address) ? candidate.address.join(":") : `${candidate.address.host}:${candidate.address.port}`,
        delay: candidate.estimated_delay, plausible: candidate.plausible, weight: candidate.load_weight, p50: candidate.ping_p50, least: candidate.ping_least,
        jitter: candidate.jitter, answered: candidate.answered, pinged: candidate.pinged, verdict: candidate.verdict,
      }))));
      const asked = searches.reduce((total, one) => total + (one.counts.asked ?? 0), 0);
      cards[0].note.textContent = some(asked, "search").replace("searchs", "searches");
      listed.update(Object.values(model.bdns).flatMap((bdn) => bdn.brokers.map((one) => ({
        key: `${bdn.node}/${one.name}`, bdn: bdn.node, overlay: bdn.overlay, name: one.name, address: one.address, round_trip: one.round_trip,
        region: one.region, institution: one.institution, links: Array.isArray(one.links) ? one.links.length : one.links,
      }))));
      brokers.update(Object.values(model.brokers).map((one) => ({
        key: one.node, node: one.node, neighbours: one.neighbours.join(", "), requests: one.counts.requests + one.counts.injected,
        answered: one.counts.answered, pings: one.counts.pings, declined: one.counts.declined, limited: one.counts.rate_limited,
      })));
    },
  };
}
