// The details of one layer: its sites with their candidates and the what-if, its values, its code at every stage.
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
    html("td", { class: "number" }, timeOfSite(candidate.time), !decided && difference !== null && difference !== 0 && html("small", {}, signedTime(difference))),
    html("td", { class: "number" }, errorOfRule(candidate.rule, candidate.predicted_error)),
    html("td", { class: "number" }, errorOfRule(candidate.rule, candidate.error_alone)),
    html("td", { class: "number" }, candidate.rule === asItIs ? missing : digits(candidate.local_error, 2)),
    html("td", { class: "number" }, smallPercent(candidate.clipped_share)),
    html("td", { class: "number" }, bytes(candidate.bytes)),
    html("td", {}, html("span", { class: "proof" }, candidate.proof || missing)));
}
const signedTime = (seconds) => `${seconds > 0 ? "+" : ""}${time(seconds)}`;

function siteBlock(site) {
  const what = { product: "The computation of the product", value: "The storage of the value", function: "The computation of functions" };
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
    html("div", { class: "heading" }, html("h3", {}, "The kernels of the layer"),
      html("div", { class: "choice", role: "group", "aria-label": "The form that is shown" }, forms.map(([form, name]) =>
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

// The layers that share a node of the graph, if a large model has several in one.
function neighbours() {
  const node = nodeOfLayer.has(selectedLayer) ? picture.nodes[nodeOfLayer.get(selectedLayer)] : null;
  if (!node || node.layers.length < 2) return null;
  return html("p", { class: "note neighbours" }, "In this node: ", node.layers.map((name) => [
    html("button", { type: "button", class: "name", "aria-pressed": String(name === selectedLayer),
                     on: { click: () => selectLayer(name, null, false) } }, name), " "]));
}

// The layer's inputs and outputs, and the values of its kernels.
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
    own.length ? [html("p", { class: "note how" }, "Choose another rule to see its effect."), own.map(siteBlock)]
               : html("p", { class: "note" }, "No rule is applied here: the layer computes what the model states."),
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
