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
    const share = 0.62 + 0.38 * Math.sqrt(zone.members.length / most);
    const wants = labelled(zone) ? 1 : 0;
    const margin = 22 + wants * Math.min(76, 0.16 * Math.min(w, hgt) + 22);
    const radius = Math.max(12, (Math.min(w, hgt - 26) / 2 - margin) * share);
    return { x: shift + (i % columns + 0.5) * w, y: (row + 0.5) * hgt + 8, radius, margin, cell: Math.min(w, hgt) };
  });
}

export const labelled = (zone) => zone.members.length <= LABELLED;

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
