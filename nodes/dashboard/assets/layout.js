// Where zones and members are drawn: pure geometry.

const LABELLED = 84; // members of a zone up to which names stand around its ring, if there is room

// Cells for zones: as square as the stage allows.
export function places(zones, width, height) {
  const n = Math.max(zones.length, 1);
  let best = { size: 0, columns: 1 };
  for (let columns = 1; columns <= n; columns++) {
    const size = Math.min(width / columns, height / Math.ceil(n / columns));
    if (size > best.size) best = { size, columns };
  }
  const { columns } = best;
  const rows = Math.ceil(n / columns);
  const [w, hgt] = [width / columns, height / rows];
  const most = Math.max(...zones.map((zone) => zone.members.length), 1);
  return zones.map((zone, i) => {
    const row = Math.floor(i / columns);
    const inRow = row === rows - 1 ? n - row * columns : columns;
    const shift = (columns - inRow) * w / 2;
    const share = 0.7 + 0.3 * Math.sqrt(zone.members.length / most);
    // Names stand beside a ring, its title above.
    const names = labelled(zone) ? Math.min(74, 0.19 * w) : 14;
    const above = labelled(zone) ? 58 : 26;
    const radius = Math.max(12, Math.min(w / 2 - names, hgt / 2 - above + 8) * share);
    return { x: shift + (i % columns + 0.5) * w, y: (row + 0.5) * hgt + (labelled(zone) ? 16 : 8), radius, names, cell: Math.min(w, hgt) };
  });
}

export const labelled = (zone) => zone.members.length <= LABELLED;

// How high a stage is that shows these zones well at that width.
export function heightFor(zones, width) {
  const n = Math.max(zones.length, 1);
  const most = Math.max(...zones.map((zone) => zone.members.length), 1);
  const columns = Math.min(n, Math.max(1, Math.round(width / (n > 6 ? 260 : 400))));
  const cell = Math.min(width / columns, most > 60 && n === 1 ? 640 : n === 1 ? 470 : 430);
  return Math.max(300, Math.min(Math.ceil(n / columns) * cell, 1400));
}

// Members on their ring: in the order of their places, evenly, the least at the top.
export function around(zone, place) {
  const n = Math.max(zone.members.length, 1);
  return zone.members.map((member, i) => {
    const angle = -Math.PI / 2 + (2 * Math.PI * i) / n;
    return { ...member, angle, x: place.x + place.radius * Math.cos(angle), y: place.y + place.radius * Math.sin(angle) };
  });
}

export function dotRadius(zone, place) {
  const gap = (2 * Math.PI * place.radius) / Math.max(zone.members.length, 1);
  return Math.max(1.6, Math.min(7, gap / 2.6));
}
