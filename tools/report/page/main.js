// The parts that are drawn once, the what-if bar, the colours; then the start.
function drawHeader() {
  document.title = `${study.model || "model"} – hoist report`;
  byId("model").textContent = study.model || "model";
  byId("summary").textContent = study.summary.replace(/(\d) us\b/g, "$1 µs");  // the text summary avoids µ, which some terminals lack
  const mark = html("span", { class: study.budget_met ? "met" : "not-met" }, study.budget_met ? "✓ budget met" : "! budget not met");
  const best = chosen ? `; best point is ${chosen.name}` : "";
  show("budget", study.budget && [mark, html("span", { class: "budget-text" },
    study.budget_met ? ` ${study.budget}` : ` ${study.budget}${best}`),
    study.confidence && html("span", { class: "note" }, `: ${study.confidence}`)],
    study.objective && html("span", { class: "note" }, ` · objective: ${study.objective}`));
}

function figure(name, value, detail, class_) {
  return html("div", { class: class_ }, html("dt", {}, name), html("dd", {}, html("b", {}, value), html("span", {}, detail)));
}

function drawFigures() {
  const point = chosen;
  if (!point) return show("figures");
  const before = reference && reference !== point ? reference : null;
  const figures = [figure("Time of a run", time(timeOf(point)),
    before ? `${digits(timeOf(before) / timeOf(point))} times as fast as ${time(timeOf(before))}` : timeInterval(point.time))];
  if (hasLabels(point)) {
    const drop = before && hasPairs(point) ? signed(-point.drop.value * 100, 2, " points, ") : "";
    figures.push(figure("Top-1", percent(point.top1.value),
      before ? `${drop}lost ${count(point.lost)}, gained ${count(point.gained)} of ${count(point.samples)}` : `of ${count(point.samples)} samples`));
  }
  if (hasAgreement(point)) figures.push(figure("Agreement", percent(point.agreement.value), `${count(point.flips)} flips of ${count(point.samples)}`));
  if (usesMetric) figures.push(figure("Your metric", digits(point.user_metric, 4), before ? `${digits(before.user_metric, 4)} before` : ""));
  const foreseen = before ? `predicted ${decibel(sqnrOf(point.predicted_error))}` : "the unchanged model";
  figures.push(figure("Output SQNR", decibel(pointSqnr(point)), point.verified ? foreseen : "predicted only"));
  if (isNumber(point.psnr)) figures.push(figure("Output PSNR", decibel(point.psnr), "against the range of the outputs"));
  figures.push(figure("Weights", bytes(point.size), before ? `of ${bytes(before.size)}` : ""));
  show("figures", figures);
}

function drawProvenance() {
  const rows = [["Model", study.model, study.model_hash], ["Calibration data", `${count(study.calibration_samples)} samples`, study.calibration_hash],
                ["Verification data", `${count(study.verification_samples)} samples`, study.verification_hash],
                ["Classes", study.classes > 0 ? count(study.classes) : ""], ["Device", study.device], ["Profile", study.profile],
                ["Budget", study.budget], ["Objective", study.objective], ["Seed", study.seed], ["hoist", study.version]];
  show("provenance", rows.filter(([, value]) => value !== "" && value !== undefined)
    .map(([name, value, hash]) => pair(name, value, hash && html("code", { class: "hash" }, hash))));
  show("notes", study.notes.length > 0 && [html("h3", {}, "Notes"), html("ul", {}, study.notes.map((note) => html("li", {}, note)))]);
}

const ratioTo = (now, before) => (isNumber(now) && before > 0 ? ` ${change(now / before - 1)}` : "");
const undoButton = () =>
  html("button", { type: "button", class: "plain", id: "undo", on: { click: () => { changes.clear(); drawWhatIf(); } } }, "Undo all");
function drawWhatIf() {
  const bar = byId("what-if");
  bar.hidden = changes.size === 0;
  document.body.classList.toggle("with-what-if", changes.size > 0);
  const refused = contradictions();
  if (changes.size > 0 && refused.length > 0) {
    show("what-if",
      html("div", { class: "what-if-numbers" }, html("strong", {}, "What if"), html("span", { id: "refused" }, `This does not go together: ${refused.join("; ")}.`)),
      undoButton());
  } else if (changes.size > 0) {
    const sum = whatIf();
    const before = sqnrOf(baseline.error), after = sqnrOf(sum.error);
    const list = [...changes].map(([key, rule]) => `${key}: ${ruleName(rule)}`);
    show("what-if",
      html("div", { class: "what-if-numbers" },
        html("strong", {}, "What if"),
        html("span", {}, "time ", html("b", { id: "what-if-time" }, time(sum.time)), ratioTo(sum.time, baseline.time)),
        html("span", {}, "SQNR ", html("b", { id: "what-if-sqnr" }, decibel(after)),
             Number.isFinite(before) && Number.isFinite(after) ? ` ${signed(after - before, 2, " dB")}` : ""),
        html("span", {}, "error ", html("b", { id: "what-if-error" }, digits(sum.error)), ratioTo(sum.error, baseline.error)),
        html("span", {}, "weights ", html("b", {}, bytes(sum.size)))),
      html("div", { class: "what-if-list note" }, `Predicted, without conversions between formats.${isNumber(sum.time) ? "" : " One of these rules was not timed."} ${list.join("; ")}`),
      html("button", { type: "button", class: "plain", id: "copy", on: { click: copyPreferences } }, "Copy as preferences"),
      undoButton());
  }
  const focused = document.activeElement && document.activeElement.dataset.rule;
  const key = focused !== undefined && document.activeElement.name;
  drawFront();
  drawSites();
  if (selectedLayer !== null) drawLayer();
  if (key) [...document.querySelectorAll("input[type=radio]")].find((each) => each.name === key && each.dataset.rule === focused).focus({ preventScroll: true });
}

// The text is also shown, since some browsers do not let local pages write to the clipboard.
function copyPreferences() {
  const text = preferences();
  const shown = html("pre", { id: "preferences", tabindex: 0 }, html("code", {}, text));
  const old = byId("preferences");
  if (old) old.replaceWith(shown);
  else byId("what-if").append(shown);
  if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => getSelection().selectAllChildren(shown));
  else getSelection().selectAllChildren(shown);
}

// The page's address contains the chosen layer and point, so that a link leads back: #layer=conv1&point=front+2.
const address = new URLSearchParams();
let keepsAddress = false; // false while the page is built
function keepAddress(parts) {
  if (!keepsAddress) return;
  for (const [name, value] of Object.entries(parts)) address.set(name, value);
  history.replaceState(null, "", `#${address}`);
}
function goToAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const point = points.find((each) => each.name === wanted.get("point")), layer = wanted.get("layer");
  if (point) selectPoint(point);
  if (layerNames.includes(layer) || nodeOfLayer.has(layer)) selectLayer(layer, null, true);
}

const themeKey = "hoist-report-theme";
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  pressOne(document.querySelectorAll(".theme button"), (button) => button.dataset.theme === theme);
  // Browsers may deny storage to local pages; the choice then lasts as long as the page.
  try { localStorage.setItem(themeKey, theme); } catch { return; }
}
function startTheme() {
  for (const button of document.querySelectorAll(".theme button")) button.addEventListener("click", () => setTheme(button.dataset.theme));
  let theme = "auto";
  try { theme = localStorage.getItem(themeKey) || "auto"; } catch { theme = "auto"; }
  setTheme(["light", "dark"].includes(theme) ? theme : "auto");
}

function start() {
  byId("content").hidden = false;  // empty without this program, and therefore hidden
  startTheme();
  drawHeader();
  drawFigures();
  drawFront();
  drawPointCard();
  drawPointTable();
  startSites();
  startPicture();
  drawProvenance();
  const first = [...sites].sort(compare)[0];
  if (first) selectLayer(first.layer, first.key, false);
  else if (layers.length) selectLayer(layers[0].name, null, false);
  else byId("layer-section").hidden = true;
  let width = byId("front").clientWidth;
  new ResizeObserver(() => {
    const now = byId("front").clientWidth;
    if (now === width) return;
    width = now;
    drawFront();
  }).observe(byId("front"));
  keepsAddress = true;
  goToAddress();
  addEventListener("hashchange", goToAddress);
}
start();
