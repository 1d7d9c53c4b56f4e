// Time: the offset of each node's clock, how sure that is, and who says so.

import { Table, card, h, nodeLink, svg, tag, tiles } from "./dom.js";
import { count, milliseconds, offset, ppm } from "./format.js";

export function view() {
  const top = tiles({ known: "know the time", roots: "roots", error: "largest error", spread: "offsets apart" });
  const nodes = new Table("time", [
    { name: "node", of: (row) => nodeLink(row.overlay, row.node) },
    { name: "zone", of: (row) => row.zone },
    { name: "offset", of: (row) => axis(row) },
    { name: "offset ± error", num: true, of: (row) => (row.synchronised ? offset(row.offset, row.error) : "no time yet") },
    { name: "drift", num: true, of: (row) => ppm(row.drift) },
    { name: "stratum", num: true, of: (row) => count(row.stratum) },
    { name: "root", of: (row) => (row.root === row.node ? tag("it is the root", "gold") : row.root) },
  ]);
  const sources = new Table("sources", [
    { name: "node", of: (row) => nodeLink(row.overlay, row.node) },
    { name: "source", of: (row) => row.source },
    { name: "state", of: (row) => tag(row.state, MOODS[row.state]) },
    { name: "stratum", num: true, of: (row) => count(row.stratum) },
    { name: "offset ± error", num: true, of: (row) => offset(row.offset, row.error) },
    { name: "delay", num: true, of: (row) => milliseconds(row.delay) },
    { name: "drift", num: true, of: (row) => ppm(row.drift) },
    { name: "samples", num: true, of: (row) => count(row.samples) },
  ], { empty: "no node has a source of time" });
  const first = card("Offsets", nodes.element);
  const second = card("Sources", sources.element);
  return {
    element: h("div", {}, h("h1", {}, "Time"), top.element, first.element, second.element),
    update(model) {
      const all = Object.values(model.nodes).sort((a, b) => (a.node < b.node ? -1 : 1));
      const known = all.filter((one) => one.synchronised);
      const reach = Math.max(1e-6, ...known.map((one) => Math.abs(one.offset) + one.error));
      top.set("known", `${count(known.length)} of ${count(all.length)}`);
      top.set("roots", count(new Set(known.map((one) => one.root)).size));
      top.set("error", known.length ? milliseconds(Math.max(...known.map((one) => one.error))) : "–");
      const offsets = known.map((one) => one.offset);
      top.set("spread", known.length ? milliseconds(Math.max(...offsets) - Math.min(...offsets)) : "–");
      first.note.textContent = known.length ? `each line is from −${milliseconds(reach)} to +${milliseconds(reach)}` : "";
      nodes.update(all.map(({ node, overlay, zone, synchronised, offset: at, error, drift, stratum, root }) => ({ key: node, node, overlay, zone, synchronised, offset: at, error, drift, stratum, root, reach })));
      sources.update(all.flatMap((one) => Object.values(one.sources).map((source) => ({
        key: `${one.node}/${source.source}`, node: one.node, overlay: one.overlay, source: source.source, state: source.state, stratum: source.stratum,
        offset: source.offset, error: source.error, delay: source.delay, drift: source.drift, samples: source.samples,
      }))));
      second.note.textContent = count(sources.rows.size);
    },
  };
}

const MOODS = { chosen: "good", falseticker: "bad", silent: "warn" };

function axis(row) {
  const place = (value) => 100 + (96 * value) / row.reach;
  const drawn = svg("svg", { class: "axis", viewBox: "0 0 200 20", preserveAspectRatio: "none", role: "img", "aria-label": "offset" });
  drawn.append(svg("line", { class: "zero", x1: 2, x2: 198, y1: 10, y2: 10 }), svg("line", { class: "zero", x1: 100, x2: 100, y1: 3, y2: 17 }));
  if (row.synchronised) {
    drawn.append(svg("line", { class: "error", x1: place(row.offset - row.error), x2: place(row.offset + row.error), y1: 10, y2: 10 }),
      svg("line", { class: "at", x1: place(row.offset), x2: place(row.offset), y1: 10, y2: 10 }));
  }
  return drawn;
}
