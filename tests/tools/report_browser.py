"""Clicks through a report page in a headless Chromium, as a reader would, and checks its content.

report_browser.py CHROMIUM PAGE HOSTILE_PAGE EMPTY_PAGE COLLAPSED_PAGE COMPARISON KERNELS [SCREENSHOTS]; report_test.cpp makes the pages and calls this.
SCREENSHOTS is a folder for screenshots and a print. The exit code is 0 if all checks pass.
"""

import json
import math
import os
import re
import sys

from browser import Browser, PageError


def check(condition, what):
    if not condition:
        raise PageError(what)


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


def count(browser, selector):
    return browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")


def quiet(browser, page):
    """No errors, and no requests except for the page itself."""
    check(not browser.errors, f"the page complains: {browser.errors}")
    strangers = [url for url in browser.requests if url != "file://" + os.path.abspath(page)]
    check(not strangers, f"the page asks for {strangers}")


def head(browser, study):
    check(text(browser, "#model") == study["model"], "the model's name")
    check(text(browser, "#summary") == study["summary"], "the summary")
    check("budget met" in text(browser, "#budget"), "the budget")
    check(count(browser, "#figures > div") == 5, "five figures")
    check(study["seed"] in text(browser, "#provenance"), "the seed with all digits")
    check(study["model_hash"] in text(browser, "#provenance"), "the model's hash")
    check(count(browser, "#notes li") == len(study["notes"]), "the notes")


def words(browser):
    """The page uses the terms of the program's other commands."""
    shown = browser.evaluate("document.body.innerText")
    check(not re.search(r"\bplaces?\b", shown), "a site is called a site")
    check(not re.search(r"\d (B|KB|KiB|MiB|us)\b", shown), "bytes and times have one unit each")


def front(browser, study):
    points = study["points"]
    verified = [point for point in points if point["verified"]]
    check(count(browser, "#points tbody tr") == len(points), "a row for each point")
    check("change of top-1" in text(browser, "#front figcaption"), "the paired change at first")
    check(count(browser, "#front [data-point]") == len(verified), "measured points under it")
    check(count(browser, "#front .bars path") == 0, "no bars that bury them")
    browser.click("#bars")
    check(count(browser, "#front .bars path") >= len(verified), "bars of intervals where they are asked for")
    check("95 %" in text(browser, "#front figcaption"), "and what they are")
    browser.click("#bars")
    rows = browser.evaluate("[...document.querySelectorAll('#points [data-select-point]')].map(e => Number(e.dataset.selectPoint))")
    chosen = next(index for index, point in enumerate(points) if point["chosen"])
    seconds = [points[index]["time"]["value"] if points[index]["verified"] else points[index]["predicted_time"] for index in rows]
    check(rows[0] == chosen and seconds[1:] == sorted(seconds[1:]), "the chosen point first, then the fastest")
    browser.click("#measures button:nth-child(1)")
    check("top-1 accuracy" in text(browser, "#front figcaption"), "top-1 itself")
    browser.click("#measures button:nth-child(4)")
    check(count(browser, "#front [data-point]") == len(points), "all points under SQNR")
    check(count(browser, "#front .halo") == 2, "the chosen point and its entry in the key")
    browser.hover('[data-point="1"]')
    check("uniform f16" in text(browser, "#front .tip"), "details on hover")
    browser.click('[data-point="1"]')
    check(text(browser, "#point-name") == "uniform f16", "a click selects a point")
    check(count(browser, '#points tr[aria-selected="true"]') == 1, "its row is lit")
    browser.evaluate("document.querySelector('[data-point=\"3\"]').focus()")
    browser.key("Enter", 13, "\r")
    check(text(browser, "#point-name") == "uniform w8a8", "so does the Enter key")
    check(browser.evaluate("document.activeElement.dataset.point") == "3", "and the focus stays")
    browser.click('[data-select-point="9"]')
    lost = next(point for point in points if point["name"] == text(browser, "#point-name"))["lost"]
    check(f"lost {lost}" in text(browser, "#point"), "paired counts")
    browser.click("#measures button:nth-child(2)")


def order_shown(browser):
    return browser.evaluate("[...document.querySelectorAll('#sites [data-site]')].map(row => row.dataset.site)")


def table(browser, study):
    sites = study["sites"]
    check(len(order_shown(browser)) == len(sites), "a row for each site")

    def saved(site):
        after = next((each["time"] for each in site["candidates"] if each["rule"] == site["chosen"]), site["time"])
        return site["time"] - after
    first = [saved(next(site for site in sites if site["key"] == key)) for key in order_shown(browser)]
    check(first == sorted(first, reverse=True) and first[0] > 0, "what saves most stands first")
    for column, key in (("Before", lambda site: site["time"]), ("Sensitivity", lambda site: site["sensitivity"])):
        browser.click(f'[data-sort="{column}"]')
        expected = [site["key"] for site in sorted(sites, key=key, reverse=True)]
        check(order_shown(browser) == expected, f"sorted by {column}, largest first")
        browser.click(f'[data-sort="{column}"]')
        check(order_shown(browser) == expected[::-1], f"sorted by {column}, smallest first")
    check(browser.evaluate("document.querySelector('[data-sort=Sensitivity]').closest('th').ariaSort") == "ascending",
          "the order is said aloud")
    browser.type("#search", "gelu")
    check(order_shown(browser) == ["function head/gelu"], "the search finds an operator")
    browser.evaluate("(e => { e.value = ''; e.dispatchEvent(new Event('input')) })(document.querySelector('#search'))")
    browser.click("#changed-only")
    check(len(order_shown(browser)) == sum(1 for site in sites if site["chosen"]), "the changed sites only")
    browser.click("#changed-only")


def layer(browser):
    browser.click('[data-site="product stage2/conv1"] .name')
    check("stage2/conv1" in text(browser, "#layer-heading"), "the layer's heading")
    check("stage2/conv1" in text(browser, ".node.lit"), "the layer is lit in the picture")
    check(count(browser, ".node.read") == 1 and count(browser, ".edge.read") == 1, "and what it reads")
    check("[1][64][32][32]f32" in text(browser, "#layer .shapes"), "its shapes")
    check("1\u202f234\u202f567 as the model is, 2\u202f345\u202f678 as chosen" in text(browser, "#layer .shapes"), "and operations")
    check('Conv("stage2/conv1")' in text(browser, '[data-stage="high"] code'), "its high-level Lift")
    check(count(browser, '[data-stage="source"][open]') == 0, "code is closed at first")
    browser.click('[data-stage="source"] summary')
    check("__global const char*" in text(browser, '[data-stage="source"] code'), "the chosen source")
    browser.click('[data-form="reference"]')
    check("__global const float*" in text(browser, '[data-stage="source"][open] code'), "the source as the model is")
    check(count(browser, "#layer .histogram rect") > 20, "a histogram")
    bars = browser.evaluate("[...document.querySelectorAll('#layer .histogram rect')].map(each => Number(each.getAttribute('width')))")
    check(max(bars) < 3 * min(bars), f"bars from {min(bars)} to {max(bars)} wide")
    browser.click(".node:nth-last-of-type(2)")
    check("head/dense" in text(browser, "#layer-heading"), "a click in the picture selects a layer")
    browser.evaluate("document.querySelector('#picture').focus()")
    browser.key("ArrowUp", 38)
    check("head/gelu" in text(browser, "#layer-heading"), "arrow keys go through the picture")
    browser.click('[data-site="value stage1/relu1_out"] .name')
    check(count(browser, "#layer .clip") > 0, "the clip range")
    check(count(browser, "#layer .stored") == 2, "and what is stored under it, in all and closely")
    steps(browser)


def steps(browser):
    """The line of stored values is a staircase: several bins of the histogram round to one value of u8."""
    check("numbers here, " in text(browser, "#layer .histogram") and " apart" in text(browser, "#layer .histogram"), "how far apart")
    stored, bars = browser.evaluate("(e => [e.querySelector('.stored').getAttribute('d').match(/H/g).length, e.querySelectorAll('rect').length])"
                                    "(document.querySelector('#layer .detail'))")
    check(4 < stored < bars / 3, f"{stored} steps over {bars} bars")
    ticks = browser.evaluate("document.querySelector('#layer .detail .levels').getAttribute('d').match(/M/g).length")
    check(abs(ticks - stored) <= 2, f"a mark for each number, {ticks} for {stored} steps")
    browser.click('#layer .site.lit input[data-rule="f16"]')
    check(count(browser, "#layer .stored") == 0, "no steps where none can be seen")
    browser.click("#undo")


def kernels(browser):
    """The time and the bound of each kernel; each leads to its layer."""
    drawn = count(browser, "#kernels-section > section [aria-label=Timeline] rect.whole")
    check(drawn > 5, "a bar for each kernel")
    check(count(browser, "#kernels-section > section [aria-label=Roofline] circle") == drawn, "and a circle under the roof")
    check(count(browser, "#kernels-section > section [aria-label=Kernels] tbody tr") == drawn, "and a row")
    widths = browser.evaluate("['#kernels-section > section', '#kernels-reference'].map(place => Number("
                              "document.querySelector(place + ' rect.whole').getAttribute('width')))")
    check(abs(widths[1] / widths[0] - 2) < 0.01, f"one timescale for both forms, {widths}")
    check(not browser.evaluate("document.querySelector('#kernels-reference').open"), "the unchanged model on demand")
    browser.click("#kernels-reference > summary")
    check(browser.evaluate("document.querySelector('#kernels-reference').open"), "which is shown then")
    browser.click("#kernels-reference > summary")
    browser.click('#kernels-section > section [aria-label=Kernels] a[href="#layer=stage2%2Fconv1"]')
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    check("stage2/conv1" in text(browser, "#layer-heading"), "a kernel leads to its layer")
    check(browser.evaluate("document.querySelector('#layer-section').getBoundingClientRect().top < innerHeight"), "in sight")


def links(browser, page):
    """The address follows the selection, and leads back to it."""
    browser.click('[data-site="product stage2/conv1"] .name')
    browser.click('[data-select-point="1"]')
    address = browser.evaluate("location.hash")
    check("layer=stage2%2Fconv1" in address and "point=uniform+f16" in address, f"the address is {address}")
    browser.open(page)
    check(browser.evaluate("location.hash") == "", "no address where nothing was chosen")
    browser.evaluate(f"location.hash = {json.dumps(address)}")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    check("stage2/conv1" in text(browser, "#layer-heading"), "the layer of the address")
    check(text(browser, "#point-name") == "uniform f16", "and the point")
    check(browser.evaluate("document.querySelector('#layer-section').getBoundingClientRect().top < innerHeight"), "in sight")
    place = browser.evaluate("(() => { const a = document.querySelector('.node.lit').getBoundingClientRect(), "
                             "b = document.querySelector('#picture').getBoundingClientRect(); "
                             "return a.top >= b.top - 1 && a.bottom <= b.bottom + 1; })()")
    check(place, "the picture has scrolled to the layer")
    browser.evaluate("location.hash = '#layer=nothing&point=%3Cscript%3E'")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    check("stage2/conv1" in text(browser, "#layer-heading"), "an address of nothing changes nothing")
    browser.open(page)


def decibel(power, error):
    return f"{10 * math.log10(power / error):.1f} dB"


def what_if_nothing(browser, study):
    """Resetting the contraction with the largest error removes its error from the sum."""
    chosen = next(point for point in study["points"] if point["chosen"])
    errors = {site["key"]: candidate["predicted_error"] for site in study["sites"]
              for candidate in site["candidates"] if candidate["rule"] == site["chosen"] and site["kind"] == "product"}
    key, error = max(errors.items(), key=lambda item: item[1])
    browser.click(f'[data-site="{key}"] .name')
    browser.click('#layer .site.lit input[data-rule=""]')
    shown = float(text(browser, "#what-if-error").replace("\u2212", "-"))
    check(abs(shown / (chosen["predicted_error"] - error) - 1) < 0.006, f"the error without {key} is not {shown}")
    browser.click("#undo")


def what_if(browser, study):
    browser.click('[data-site="product stage2/conv1"] .name')
    site = next(site for site in study["sites"] if site["key"] == "product stage2/conv1")
    chosen = next(point for point in study["points"] if point["chosen"])
    rules = {candidate["rule"]: candidate for candidate in site["candidates"]}
    check(browser.evaluate("document.querySelector('#what-if').hidden"), "no bar at first")
    browser.click('input[data-rule="w4g32a16"]')
    before, after = rules[site["chosen"]], rules["w4g32a16"]
    error = chosen["predicted_error"] + after["predicted_error"] - before["predicted_error"]
    seconds = chosen["time"]["value"] + after["time"] - before["time"]
    check(text(browser, "#what-if-sqnr") == decibel(study["output_power"], error), "the SQNR of the what-if")
    check(abs(float(text(browser, "#what-if-time").split()[0]) - seconds * 1e6) < 1, "its time in us")
    browser.click("#copy")
    check(text(browser, "#preferences") == "pin stage2/conv1 w4g32a16\n", "the what-if as preferences")
    check("what if: w4g32a16" in text(browser, '[data-site="product stage2/conv1"]'), "the table says so")
    browser.click("#measures button:nth-child(4)")
    check(count(browser, ".what-if-mark") == 1, "a mark in the front")
    browser.evaluate("document.querySelector('input[data-rule=w4g32a16]').focus()")
    browser.key("ArrowUp", 38)
    check(count(browser, 'input[data-rule="w8a8-dynamic"]:checked') == 1, "arrow keys choose rules")
    check(browser.evaluate("document.activeElement.dataset.rule") == "w8a8-dynamic", "and the focus stays")
    browser.click("#undo")
    check(browser.evaluate("document.querySelector('#what-if').hidden"), "undone")


def what_does_not_go_together(browser, study):
    """A contraction of 8-bit integers whose input is stored as floats has no values and no preferences."""
    chosen = {site["key"]: site["chosen"] for site in study["sites"]}
    value, product = "value stage1/relu1_out", "product stage1/conv2"

    def choose(key, rule):
        browser.click(f'[data-site="{key}"] .name')
        browser.click(f'#layer .site.lit input[data-rule="{rule}"]')

    choose(value, "bf16" if chosen[value] == "f16" else "f16")
    if chosen[product] != "w8a8":
        choose(product, "w8a8")
    said = text(browser, "#refused")
    check(f"{product} under w8a8 needs its input stored in u8, and stage1/relu1_out is " in said, said)
    check(count(browser, "#copy") == 0 and count(browser, "#what-if-error") == 0, "no numbers of what cannot be")
    check(count(browser, ".what-if-mark") == 0, "and no mark in the front")
    choose(value, "u8-percentile")
    check(count(browser, "#refused") == 0, "now it goes together")
    if not browser.evaluate("document.querySelector('#what-if').hidden"):
        check(count(browser, "#copy") == 1, "and can be copied")
        browser.click("#undo")


def cells(browser, rule):
    """The cells of a rule's row at the selected site."""
    return browser.evaluate("[...document.querySelector('#layer .site.lit input[data-rule=\"" + rule + "\"]').closest('tr').cells]"
                            ".map(cell => cell.textContent)")


def what_is_not_known(browser):
    browser.click('[data-site="product stage2/conv1"] .name')
    check(cells(browser, "bf16-weights")[1] == "\u2013", "no time where nobody measured one")
    check(cells(browser, "bf16-weights")[3] == "\u2013", "and no error")
    browser.click('input[data-rule="bf16-weights"]')
    check(text(browser, "#what-if-time") == "\u2013", "a sum with an unknown part is unknown")
    check("was not timed" in text(browser, "#what-if"), "and the bar says why")
    check(text(browser, "#what-if-sqnr").endswith(" dB"), "its error is known")
    browser.click("#undo")
    browser.click('[data-site="value stage1/relu1_out"] .name')
    check(cells(browser, "f16")[2:4] == ["exact", "exact"], "a rule without an error is exact")
    check(cells(browser, "")[2:4] == ["\u2013", "\u2013"], "and no rule says nothing")


def background(browser):
    return browser.evaluate("getComputedStyle(document.body).backgroundColor")


def colours(browser, page):
    light = background(browser)
    browser.click('[data-theme="dark"]')
    dark = background(browser)
    check(light == "rgb(255, 255, 255)" and dark != light, "the switch")
    browser.click('[data-theme="auto"]')
    check(background(browser) == light, "the system's colours, light")
    browser.open(page, dark=True)
    check(background(browser) == dark, "the system's colours, dark")


def policy(browser, page):
    """The page's policy blocks the attempts of untrusted text that became HTML."""
    quiet(browser, page)
    blocked = browser.evaluate("fetch('http://127.0.0.1:9/').then(() => false, () => true)")
    check(blocked, "the page may ask the network")
    browser.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.hostile = 1'}))")
    browser.evaluate("document.body.setAttribute('onclick', 'window.hostile = 1'); document.body.click()")
    check(browser.evaluate("window.hostile === undefined"), "a foreign script may run")
    check(len(browser.errors) >= 3, "the policy refused in silence")
    browser.errors.clear()
    browser.requests.clear()


def widths(browser, page):
    for width in (320, 390, 700, 900, 1100, 1300):
        browser.open(page, width=width, height=844, phone=width < 700)
        wide = browser.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"at {width} pixels the page is {wide} wide")
        cut = browser.evaluate("[...document.querySelectorAll('.choice')].filter(e => e.scrollWidth > e.clientWidth + 1).length")
        check(cut == 0, f"at {width} pixels a row of buttons is cut off")
        check(browser.evaluate("document.querySelector('#measures').getBoundingClientRect().right") <= width,
              f"at {width} pixels the row of measures leaves the page")


def hostile(browser, page):
    browser.open(page)
    check(browser.evaluate("window.hostile === undefined"), "a hostile name ran")
    check("onerror" in text(browser, "#model"), "a hostile name is shown as it is")
    browser.click("#sites tr:nth-child(1) .name")
    browser.evaluate("[...document.querySelectorAll('#sites .name')].find(e => e.textContent.includes('script')).click()")
    check("</script>" in text(browser, "#layer-heading"), "a layer with a hostile name opens")
    check(count(browser, "img") == 0 and browser.evaluate("window.hostile === undefined"), "and is harmless")
    quiet(browser, page)


def collapsed(browser, page):
    """Several layers share a node of the graph."""
    browser.open(page)
    check(count(browser, ".node") == 8, "eight nodes")
    browser.click(".node")
    check(count(browser, ".neighbours button") == 3, "the layers of the node")
    browser.click(".neighbours button:nth-of-type(3)")
    check("stage1/conv1" in text(browser, "#layer-heading"), "a layer within a node can be reached")
    quiet(browser, page)


def still(browser, page, name, pictures):
    """A static page, on every screen."""
    browser.requests.clear()
    for width in (390, 700, 1400):
        for dark in (False, True):
            browser.open(page, width=width, height=900, phone=width < 700, dark=dark)
            wide = browser.evaluate("document.documentElement.scrollWidth")
            check(wide <= width, f"at {width} pixels the page of {name} is {wide} wide")
            if pictures:
                browser.screenshot(os.path.join(pictures, f"{name}-{width}{'-dark' if dark else ''}.png"))
    quiet(browser, page)


def keep_pictures(browser, page, folder):
    for width in (1400, 390):
        for dark in (False, True):
            browser.open(page, width=width, height=900, phone=width < 700, dark=dark)
            browser.click('[data-site="value stage1/relu1_out"] .name')
            browser.screenshot(os.path.join(folder, f"report-{width}{'-dark' if dark else ''}.png"))
    browser.open(page)
    with open(os.path.join(folder, "print.pdf"), "wb") as file:
        file.write(browser.pdf())


def click_through(browser, page, hostile_page, empty_page, collapsed_page, pictures):
    browser.open(page)
    study = browser.evaluate("JSON.parse(document.querySelector('#data').textContent).study")
    for part in (head, front, table, what_if, what_if_nothing, what_does_not_go_together):
        part(browser, study)
    words(browser)
    layer(browser)
    kernels(browser)
    what_is_not_known(browser)
    quiet(browser, page)
    browser.requests.clear()
    links(browser, page)
    browser.errors.clear()
    colours(browser, page)
    policy(browser, page)
    widths(browser, page)
    check(browser.pdf().startswith(b"%PDF"), "it prints")
    quiet(browser, page)
    if pictures:
        keep_pictures(browser, page, pictures)
    browser.requests.clear()
    hostile(browser, hostile_page)
    browser.requests.clear()
    browser.open(empty_page)
    quiet(browser, empty_page)
    browser.requests.clear()
    collapsed(browser, collapsed_page)


def main():
    program, page, hostile_page, empty_page, collapsed_page, comparison, kernels, *pictures = sys.argv[1:]
    browser = Browser(program)
    try:
        click_through(browser, page, hostile_page, empty_page, collapsed_page, pictures[0] if pictures else "")
        still(browser, comparison, "comparison", pictures[0] if pictures else "")
        check(count(browser, "svg .chosen") == 2, "the chosen point of each")
        check(count(browser, "svg .of-a") == count(browser, "svg .of-b") > 1, "the points of both")
        check(count(browser, "tr.differs") > 0, "sites that differ")
        still(browser, kernels, "kernels", pictures[0] if pictures else "")
    except PageError as error:
        print(f"{error}\nthe page's messages: {browser.errors}", file=sys.stderr)
        return 1
    finally:
        browser.close()
    return 0


sys.exit(main())
