// The table of sites: sorted, searched, and the way to a layer's details.
const columns = [
  { name: "Layer", key: (site) => site.order, first: 1, note: "order of the model" },
  { name: "Rule", key: (site) => ruleName(site.chosen), first: 1 },
  { name: "Before", words: "time before", group: "Time", key: (site) => site.time, number: true, cell: (site) => timeOfSite(site.time) },
  { name: "After", words: "time after", key: (site) => chosenAt(site).time, number: true, cell: (site) => timeOfSite(chosenAt(site).time) },
  { name: "Saved", words: "time saved", key: savedTime, number: true, keep: true,
    cell: (site) => (isChanged(site) ? [time(savedTime(site)), html("small", {}, change(relativeChange(site)))] : missing) },
  { name: "Error share", key: errorShare, number: true, keep: true, cell: shareCell },
  { name: "Predicted", words: "error predicted", key: (site) => chosenAt(site).predicted_error, number: true, group: "SQNR alone",
    cell: (site) => errorOfRule(site.chosen, chosenAt(site).predicted_error) },
  { name: "Measured", words: "error measured", key: (site) => chosenAt(site).error_alone, number: true,
    cell: (site) => errorOfRule(site.chosen, chosenAt(site).error_alone) },
  { name: "Accumulated", words: "error accumulated", key: (site) => site.accumulated_error, number: true,
    cell: (site) => errorCell(site.accumulated_error) },
  { name: "Sensitivity", class: "sensitivity-column", key: (site) => site.sensitivity, number: true, cell: (site) => digits(site.sensitivity, 2) },
  { name: "Clipped", key: (site) => chosenAt(site).clipped_share, number: true,
    cell: (site) => smallPercent(chosenAt(site).clipped_share) },
  { name: "Bytes", key: (site) => chosenAt(site).bytes, number: true,
    cell: (site) => [bytes(chosenAt(site).bytes), isChanged(site) && chosenAt(site).bytes !== site.bytes &&
                     html("small", {}, `of ${bytes(site.bytes)}`)] },
  { name: "How known", class: "proof-column", key: (site) => chosenAt(site).proof, cell: (site) => html("span", { class: "proof" }, chosenAt(site).proof || missing) },
];
const rowsAtFirst = 200;
const order = { column: columns[4], direction: -1, all: false }; // the saving of a rule
let selectedSite = null;

// Bars are drawn against the largest share, so that small ones can be told apart.
const largestShare = Math.max(...sites.map((site) => errorShare(site) || 0), 1e-9);

function savedTime(site) {
  const after = chosenAt(site).time;
  return isNumber(site.time) && isNumber(after) ? site.time - after : null;
}
function relativeChange(site) {
  return site.time > 0 && savedTime(site) !== null ? -savedTime(site) / site.time : null;
}
function shareCell(site) {
  const share = errorShare(site);
  if (!isNumber(share) || !isChanged(site)) return missing;
  return [html("span", {}, share > 0 && share < 5e-4 ? "< 0.1 %" : percent(share, 1)),
          html("span", { class: "share", "aria-hidden": "true" }, html("i", { style: { width: `${(share / largestShare) * 100}%` } }))];
}
const errorCell = (error) => (error === 0 ? missing : decibel(sqnrOf(error)));
// A rule without any error is exact; a site without a rule shows nothing.
const errorOfRule = (rule, error) => (rule === asItIs ? missing : decibel(sqnrOf(error)));

// Unknown values come last in both orders of sorting.
function compare(a, b) {
  const x = order.column.key(a), y = order.column.key(b);
  if (x === null || y === null) return (x === null) - (y === null) || a.order - b.order;
  const sign = typeof x === "string" ? x.localeCompare(y) : x - y;
  return sign * order.direction || (errorShare(b) || 0) - (errorShare(a) || 0) || a.order - b.order;
}

function sortBy(column, direction) {
  order.direction = direction || (order.column === column ? -order.direction : column.first || -1);
  order.column = column;
  drawSites();
}

function siteRow(site) {
  const open = () => selectLayer(site.layer, site.key, true);
  return html("tr", { "aria-selected": String(site.key === selectedSite), class: isChanged(site) ? null : "unchanged",
                      "data-site": site.key, on: { click: open } },
    html("th", { scope: "row" },
      html("button", { type: "button", class: "name" }, breakable(site.layer)),
      html("small", {}, [site.kind, site.operation].filter(Boolean).join(" · ")),
      html("small", { class: "narrow rule" }, ruleName(site.chosen), changes.has(site.key) && ` → ${ruleName(changes.get(site.key))}`)),
    html("td", { class: "wide" }, html("span", { class: "rule" }, ruleName(site.chosen)),
      changes.has(site.key) && html("small", { class: "what-if-text" }, `what if: ${ruleName(changes.get(site.key))}`)),
    columns.slice(2).map((column) => html("td", { class: columnClass(column) }, column.cell(site))));
}
const columnClass = (column) => [column.number && "number", !column.keep && "wide", column.class].filter(Boolean).join(" ");

function headOf(column, index) {
  const sorted = order.column === column;
  return html("th", { scope: "col", class: index === 0 ? null : columnClass(column),
                      "aria-sort": sorted ? (order.direction > 0 ? "ascending" : "descending") : "none" },
    column.group && html("span", { class: "group" }, column.group),
    html("button", { type: "button", "data-sort": column.name, on: { click: () => { sortBy(column); refocus(column); } } },
      column.name, html("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (order.direction > 0 ? " ▲" : " ▼") : "")));
}
function refocus(column) {
  const button = [...byId("sites").querySelectorAll("[data-sort]")].find((each) => each.dataset.sort === column.name);
  if (button) button.focus({ preventScroll: true });
}

function drawSites() {
  const words = byId("search").value.trim().toLowerCase();
  const onlyChanged = byId("changed-only").checked;
  const found = sites.filter((site) => (!onlyChanged || isChanged(site)) &&
    [site.layer, site.operation, site.kind, ruleName(site.chosen)].some((text) => text.toLowerCase().includes(words)));
  found.sort(compare);
  const shown = order.all ? found : found.slice(0, rowsAtFirst);
  show("sites", html("table", { class: "sites" },
    html("thead", {}, html("tr", {}, columns.map(headOf))), html("tbody", {}, shown.map(siteRow))),
    shown.length < found.length && html("p", {}, html("button", { type: "button", class: "plain", on: { click: () => { order.all = true; drawSites(); } } },
      `Show all ${count(found.length)} rows`)));
  byId("count").textContent = `${count(found.length)} of ${count(sites.length)} ${sites.length === 1 ? "site" : "sites"}`;
  byId("sort").value = String(columns.indexOf(order.column));
}

function startSites() {
  const changed = sites.filter(isChanged).length;
  show("sites-note", `${count(changed)} of ${count(sites.length)} sites changed. `,
    "Errors are written as the SQNR that the model's output would have. ",
    html("span", { class: "how" }, "Click a row for the details of its layer."));
  show("sort", columns.map((column, index) => html("option", { value: index }, column.words || column.name.toLowerCase())));
  byId("sort").addEventListener("change", (event) => {
    const column = columns[Number(event.target.value)];
    sortBy(column, column.first || -1);
  });
  byId("search").addEventListener("input", drawSites);
  byId("changed-only").addEventListener("change", drawSites);
  drawSites();
}
