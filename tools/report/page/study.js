// The embedded study and derived values. Nothing here touches the page.
const { study, layers, texts, picture } = JSON.parse(byId("data").textContent);

const asItIs = ""; // the rule of an unchanged site
const sites = study.sites.map((site, order) => ({ ...site, order }));
const siteByKey = new Map(sites.map((site) => [site.key, site]));
const layerByName = new Map(layers.map((layer) => [layer.name, layer]));
const layerNames = [...new Set([...layers.map((layer) => layer.name), ...sites.map((site) => site.layer)])];
const sitesOfLayer = new Map(layerNames.map((name) => [name, sites.filter((site) => site.layer === name)]));

// The unchanged model, without an error of its own.
const unchanged = (site) => ({
  rule: asItIs, predicted_error: 0, error_alone: 0, local_error: 0, time: site.time, bytes: site.bytes,
  clipped_share: 0, clip_low: null, clip_high: null, proof: "", reads: "", gives: [], levels: [],
});
const ruleName = (rule) => (rule === asItIs ? "as it is" : rule);
function candidatesOf(site) {
  return [unchanged(site), ...site.candidates.filter((candidate) => candidate.rule !== asItIs)];
}
const candidateOf = (site, rule) => candidatesOf(site).find((candidate) => candidate.rule === rule) || unchanged(site);
const chosenAt = (site) => candidateOf(site, site.chosen);
const isChanged = (site) => site.chosen !== asItIs;

function sqnrOf(error) {
  if (!isNumber(error) || !isNumber(study.output_power)) return null;
  return error === 0 ? Infinity : 10 * Math.log10(study.output_power / error);
}

const totalError = sites.reduce((sum, site) => sum + (chosenAt(site).predicted_error || 0), 0);
function errorShare(site) {
  const error = chosenAt(site).predicted_error;
  if (!isNumber(error)) return null;
  return totalError > 0 ? error / totalError : 0;
}

const points = study.points.map((point, order) => ({
  ...point,
  order,
  isReference: Object.values(point.assignment).every((rule) => rule === asItIs),
  isUniform: point.name.startsWith("uniform"),
}));
const reference = points.find((point) => point.isReference) || null;
const chosen = points.find((point) => point.chosen) || null;

const measured = (interval) =>
  isNumber(interval.value) && (interval.value !== 0 || interval.low !== 0 || interval.high !== 0);
const timeOf = (point) => (point.verified && measured(point.time) ? point.time.value : point.predicted_time);
const errorOf = (point) => (point.verified ? point.error : point.predicted_error);
const pointSqnr = (point) =>
  point.isReference ? Infinity : point.verified && isNumber(point.sqnr) ? point.sqnr : sqnrOf(errorOf(point));
const hasLabels = (point) => point.verified && measured(point.top1);
const hasPairs = (point) => point.verified && isNumber(point.drop.value);
const hasAgreement = (point) => point.verified && measured(point.agreement);

// Unknown if any part is unknown.
const plus = (sum, after, before) => (isNumber(sum) && isNumber(after) && isNumber(before) ? sum + after - before : null);
// The what-if: the chosen point with other rules at some sites. Predicted errors and times of sites add up; the size is
// the size of weights, which only contractions have.
const changes = new Map();
const whatIfRule = (site) => (changes.has(site.key) ? changes.get(site.key) : site.chosen);
// The site of the value that a contraction reads, if rules can store it.
const inputOf = new Map(sites.filter((site) => site.kind === "value").flatMap((site) => site.successors.map((key) => [key, site])));
// Contractions whose input the what-if stores in another type than their rules read; chosen rules fit together.
function contradictions() {
  return sites.flatMap((site) => {
    const input = inputOf.get(site.key);
    if (site.kind !== "product" || !(changes.has(site.key) || (input && changes.has(input.key)))) return [];
    const { rule, reads } = candidateOf(site, whatIfRule(site));
    if (!reads || (input && candidateOf(input, whatIfRule(input)).gives.includes(reads))) return [];
    const stored = input ? ` stored in ${reads}, and ${input.value} is ${ruleName(whatIfRule(input))}` : ` stored in ${reads}, which no rule does`;
    return [`${site.key} under ${ruleName(rule)} needs its input${stored}`];
  });
}
const weightBytes = (site, rule) => (site.kind === "product" ? candidateOf(site, rule).bytes || 0 : 0);
const baseline = {
  // The measured values, to which predicted differences are added.
  time: chosen ? timeOf(chosen) : sites.reduce((sum, site) => sum + (chosenAt(site).time || 0), 0),
  error: chosen ? chosen.predicted_error : totalError,
  size: chosen ? chosen.size : sites.reduce((sum, site) => sum + weightBytes(site, site.chosen), 0),
};
// A name in the syntax of a preferences file.
function quoted(name) {
  const line = name.replace(/[\x00-\x1f\x7f]/g, " ");
  return /^[^\s#"\\]+$/.test(line) && line !== "*" ? line : `"${line.replace(/["\\]/g, "\\$&")}"`;
}
// The what-if for --preferences: rules to add, and rules to remove.
function preferences() {
  const lines = [...changes].map(([key, rule]) => {
    const site = siteByKey.get(key);
    if (rule !== asItIs) return `pin ${quoted(site.layer)} ${rule}`;
    const whole = sitesOfLayer.get(site.layer).every((each) => whatIfRule(each) === asItIs);
    return `forbid ${quoted(site.layer)} ${whole ? "*" : site.chosen}`;
  });
  return `${[...new Set(lines)].join("\n")}\n`;
}

function whatIf() {
  const out = { ...baseline };
  for (const [key, rule] of changes) {
    const site = siteByKey.get(key);
    const before = chosenAt(site), after = candidateOf(site, rule);
    out.time = plus(out.time, after.time, before.time);
    out.error = plus(out.error, after.predicted_error, before.predicted_error);
    out.size += weightBytes(site, rule) - weightBytes(site, site.chosen);
  }
  if (out.time !== null) out.time = Math.max(out.time, 0);
  // Sums of small numbers leave rounding errors near zero.
  if (out.error !== null && out.error < totalError * 1e-12) out.error = 0;
  return out;
}
