// Everything about one layer: its sites with their candidates and the what-if, its values, its code at every stage.
const stages = [
  { name: "High-level Lift", field: "high" }, { name: "Derivation", field: "derivation" },
  { name: "Low-level Lift", field: "low" }, { name: "Halide schedule", field: "schedule" }, { name: "OpenCL source", field: "source" },
];
let selectedLayer = null;
let shownForm = "chosen";
const openStages = new Set(["high"]);

function candidateRow(site, candidate) {
  const now = chosenAt(site);
  const decided = candidate.rule === site.chosen;
  const difference = isNumber(candidate.time) && isNumber(now.time) ? candidate.time - now.time : null;
  const set = () => {
    if (decided) changes.delete(site.key);
    else changes.set(site.key, candidate.rule);
    drawWhatIf();
  };
  return html("tr", {},
    html("th", { scope: "row" }, html("label", { class: "candidate" },
      html("input", { type: "radio", name: `rule of ${site.key}`, "data-rule": candidate.rule,
                      checked: whatIfRule(site) === candidate.rule, on: { change: set } }),
      html("span", { class: "rule" }, ruleName(candidate.rule)), decided && html("span", { class: "chip" }, "chosen"))),
    html("td", { class: "number" }, timeOfPlace(candidate.time), !decided && difference !== null && difference !== 0 && html("small", {}, signedTime(difference))),
    html("td", { class: "number" }, errorOfRule(candidate.rule, candidate.predicted_error)),
    html("td", { class: "number" }, errorOfRule(candidate.rule, candidate.error_alone)),
    html("td", { class: "number" }, candidate.rule === asItIs ? missing : digits(candidate.local_error, 2)),
    html("td", { class: "number" }, smallPercent(candidate.clipped_share)),
    html("td", { class: "number" }, bytes(candidate.bytes)),
    html("td", {}, html("span", { class: "proof" }, candidate.proof || missing)));
}
const signedTime = (seconds) => `${seconds > 0 ? "+" : ""}${time(seconds)}`;

function siteBlock(site) {
  const what = { product: "How the product computes", value: "How the value is stored", function: "How functions are formed" };
  const heads = ["Rule", "Time", "SQNR predicted", "SQNR measured", "Local error", "Clipped", "Bytes", "How known"];
  return html("div", { class: `card site${site.key === selectedSite ? " lit" : ""}`, "data-key": site.key },
    html("h4", {}, what[site.kind] || site.kind),
    html("p", { class: "note" }, `value ${site.value}`, site.weights && ` · weights ${site.weights}`,
         isNumber(site.sensitivity) && ` · sensitivity ${digits(site.sensitivity, 2)}`,
         errorShare(site) !== null && isChanged(site) && ` · ${percent(errorShare(site), 1)} of the error`,
         site.accumulated_error > 0 && ` · accumulated ${errorCell(site.accumulated_error)}`),
    html("div", { class: "wide-table", tabindex: 0, role: "region", "aria-label": `Rules at ${site.key}` },
      html("table", { class: "candidates" },
        html("thead", {}, html("tr", {}, heads.map((head, index) => html("th", { scope: "col", class: index && index < 7 ? "number" : null }, head)))),
        html("tbody", {}, candidatesOf(site).map((candidate) => candidateRow(site, candidate))))),
    histogram(site));
}

// At most this many bars; what is finer is added up.
const mostBars = 96;
function rebinned(bins) {
  const together = Math.ceil(bins.length / mostBars), out = [];
  for (let i = 0; i < bins.length; i += together) out.push(bins.slice(i, i + together).reduce((sum, bin) => sum + bin, 0));
  return { bars: out, covered: (out.length * together) / bins.length };
}

function histogram(site) {
  const { statistics } = site;
  if (!statistics.histogram.length || !isNumber(statistics.low) || !isNumber(statistics.high)) return null;
  const rule = candidateOf(site, whatIfRule(site));
  const width = 560, height = 150, bottom = 118, left = 8, right = width - 8;
  const { bars, covered } = rebinned(statistics.histogram);
  const span = statistics.high - statistics.low || 1;
  const x = (value) => left + ((value - statistics.low) / span) * (right - left);
  const clipped = (value) => (isNumber(rule.clip_low) && value < rule.clip_low) || (isNumber(rule.clip_high) && value > rule.clip_high);
  const barWidth = ((right - left) * covered) / bars.length;
  const stored = storedBars(bars, rule, (value) => Math.floor(((value - statistics.low) / span / covered) * bars.length));
  const most = Math.max(...bars, ...(stored || []), 1);
  // Square roots keep the tails, which is what clipping is about, in sight.
  const heightOf = (amount) => Math.sqrt(amount / most) * (bottom - 24);
  const limits = [rule.clip_low, rule.clip_high]
    .filter((value) => isNumber(value) && value >= statistics.low && value <= statistics.high);
  const text = `${count(statistics.count)} values from ${digits(statistics.low)} to ${digits(statistics.high)}, mean ${digits(statistics.mean)}` +
    (isNumber(rule.clip_low) && isNumber(rule.clip_high) ? `; ${ruleName(rule.rule)} holds ${digits(rule.clip_low)} to ${digits(rule.clip_high)}, ${smallPercent(rule.clipped_share)} clipped` : "");
  return html("figure", { class: "histogram" },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": text },
      bars.map((amount, index) => {
        const middle = statistics.low + ((index + 0.5) / bars.length) * covered * span;
        return amount > 0 && svg("rect", { class: clipped(middle) ? "clipped" : "bar", x: left + index * barWidth, width: Math.max(barWidth - 0.5, 0.5),
                                           y: bottom - heightOf(amount), height: heightOf(amount) });
      }),
      stored && svg("path", { class: "stored", d: `M${left} ${bottom}${stored.map((amount, index) =>
        `V${bottom - heightOf(amount)}H${left + (index + 1) * barWidth}`).join("")}V${bottom}` }),
      svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
      limits.map((value) => svg("line", { class: "clip", x1: x(value), x2: x(value), y1: 6, y2: bottom + 5 })),
      axisTicks(statistics.low, statistics.high, left, right, bottom)),
    html("figcaption", { class: "note" }, text, ". Heights are square roots of counts.", stored && " The line is what is stored: clipped values stand at the ends."));
}

// After the rule, or null where it clips nothing: what lies beyond its range stands at the ends.
function storedBars(bars, rule, barOf) {
  const last = bars.length - 1;
  const low = isNumber(rule.clip_low) ? Math.min(Math.max(barOf(rule.clip_low), 0), last) : 0;
  const high = isNumber(rule.clip_high) ? Math.min(Math.max(barOf(rule.clip_high), 0), last) : last;
  if (low === 0 && high === last) return null;
  const out = bars.map(() => 0);
  bars.forEach((amount, index) => { out[Math.min(Math.max(index, low), high)] += amount; });
  return out;
}
function axisTicks(low, high, left, right, bottom) {
  const step = roundStep(high - low || 1, 7), out = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) {
    const x = left + ((i * step - low) / (high - low || 1)) * (right - left);
    if (x < left + 12 || x > right - 12) continue;
    out.push(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, digits(i * step, 2)));
  }
  return out;
}

function codeBlock(layer, stage) {
  const index = layer[shownForm][stage.field];
  const same = layer.reference[stage.field] === layer.chosen[stage.field];
  const text = index < 0 ? "" : texts[index];
  return html("details", { open: openStages.has(stage.field), "data-stage": stage.field,
                           on: { toggle: (event) => { if (event.target.open) openStages.add(stage.field); else openStages.delete(stage.field); } } },
    html("summary", {}, stage.name, html("small", {}, !text ? " none" : same ? " the same in both" : "")),
    text && html("pre", { tabindex: 0 }, html("code", {}, text)));
}

function code(layer) {
  if (!layer) return null;
  const forms = [["chosen", "As chosen"], ["reference", "As the model is"]];
  return [
    html("div", { class: "heading" }, html("h3", {}, "What it becomes"),
      html("div", { class: "choice", role: "group", "aria-label": "Which form is shown" }, forms.map(([form, name]) =>
        html("button", { type: "button", "data-form": form, "aria-pressed": String(form === shownForm),
                         on: { click: () => { shownForm = form; drawCode(); } } }, name)))),
    stages.map((stage) => codeBlock(layer, stage)),
  ];
}
function drawCode() {
  const focused = document.activeElement && document.activeElement.dataset.form;
  show("code", code(layerByName.get(selectedLayer)));
  if (focused) byId("code").querySelector(`[data-form="${focused}"]`).focus({ preventScroll: true });
}

// The layers that share a node of the picture, where a large model has several in one.
function neighbours() {
  const node = nodeOfLayer.has(selectedLayer) ? picture.nodes[nodeOfLayer.get(selectedLayer)] : null;
  if (!node || node.layers.length < 2) return null;
  return html("p", { class: "note neighbours" }, "In this node: ", node.layers.map((name) => [
    html("button", { type: "button", class: "name", "aria-pressed": String(name === selectedLayer),
                     on: { click: () => selectLayer(name, null, false) } }, name), " "]));
}

// What goes in and out, and what its kernels compute.
function shapesOf(layer) {
  if (!layer) return null;
  const lines = (texts) => texts.map((text) => html("div", {}, html("code", {}, text)));
  const before = layer.reference.operations, after = layer.chosen.operations;
  return html("dl", { class: "pairs shapes" },
    layer.reads.length > 0 && pair("Reads", lines(layer.reads)), layer.gives.length > 0 && pair("Gives", lines(layer.gives)),
    before > 0 && pair("Operations", count(before), after !== before && ` as the model is, ${count(after)} as chosen`,
      html("small", {}, "of its kernels, which other layers may share")));
}

function drawLayer() {
  const own = sitesOfLayer.get(selectedLayer) || [];
  byId("layer-heading").replaceChildren("Layer ", html("span", { class: "of" }, selectedLayer),
    html("small", {}, ` ${operationOf(selectedLayer)}`));
  show("layer", neighbours(), shapesOf(layerByName.get(selectedLayer)),
    own.length ? [html("p", { class: "note how" }, "Choose another rule to see what it would do."), own.map(siteBlock)]
               : html("p", { class: "note" }, "No rule is applied here: the layer computes as the model says."),
    html("div", { id: "code" }));
  drawCode();
}

function selectLayer(name, siteKey, go) {
  selectedLayer = name;
  const own = sitesOfLayer.get(name) || [];
  selectedSite = siteKey || (own.length ? own[0].key : null);
  for (const row of byId("sites").querySelectorAll("[data-site]"))
    row.setAttribute("aria-selected", String(row.dataset.site === selectedSite));
  drawLayer();
  lightLayer(name);
  keepAddress({ layer: name });
  if (!go) return;
  byId("layer-section").scrollIntoView({ block: "start" });
  byId("layer-heading").focus({ preventScroll: true });
}
