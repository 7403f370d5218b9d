//! Colours and style sheets. Light by default, dark where the reader asks for it, light again on paper.

/// Colours of the series in order: the palette of Okabe and Ito (2008), made for colour-blind readers. Yellow is left out
/// (too faint on white); the eighth is the ink itself. Used as plain attributes, for viewers that know no CSS variables.
pub(crate) const PALETTE: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f6a00", "#1f2630"];

/// Plain values of the variables that SVG elements carry as attributes too.
pub(crate) const INK: &str = "#1f2630";
pub(crate) const SOFT: &str = "#5a6673";
pub(crate) const GRID: &str = "#e3e7ec";
pub(crate) const AXIS: &str = "#98a3af";
pub(crate) const PAPER: &str = "#ffffff";

macro_rules! light {
    () => {
        "--bg:#ffffff;--ink:#1f2630;--soft:#5a6673;--grid:#e3e7ec;--axis:#98a3af;--tint:#f4f6f9;\
--good:#00734f;--bad:#b3261e;--warn:#8a5a00;--info:#2a5d9f;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#7f6a00;--c7:#1f2630;"
    };
}

macro_rules! dark {
    () => {
        "--bg:#14181d;--ink:#e4e8ed;--soft:#9aa6b2;--grid:#2a3038;--axis:#65707c;--tint:#1c2127;\
--good:#4cc79a;--bad:#ff8a80;--warn:#f2b84b;--info:#8ab8f0;\
--c0:#3f9fe0;--c1:#f07f2e;--c2:#22b98d;--c3:#dd97bd;--c4:#f0b73a;--c5:#8fd0f5;--c6:#b9a43a;--c7:#e4e8ed;"
    };
}

/// The variables: in a page `:root` is the document, in a file of its own it is the `svg` element.
pub(crate) const VARIABLES: &str = concat!(
    ":root{color-scheme:light dark;",
    light!(),
    "}\n@media (prefers-color-scheme:dark){:root{",
    dark!(),
    "}}\n@media print{:root{color-scheme:light;",
    light!(),
    "}}\n"
);

/// How the parts of a plot look.
pub(crate) const PLOT: &str = "\
.plot{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:12px;font-variant-numeric:tabular-nums}
.plot text{fill:var(--soft);stroke:none}
.plot .name{font-size:15px;font-weight:600;fill:var(--ink)}
.plot .key,.plot .value{fill:var(--ink)}
.plot .over,.plot .value{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
.plot .back{fill:var(--bg)}
.plot .grid{stroke:var(--grid)}
.plot .axis{stroke:var(--axis)}
.plot .span{fill:var(--soft);fill-opacity:.13}
.plot .edge{stroke:var(--soft)}
.plot .l{fill:none;stroke:var(--c);stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.plot .f{fill:var(--c);stroke:none}
.plot .p{fill:var(--c);fill-opacity:.8;stroke:var(--bg);stroke-width:.75}
.plot .o{fill:var(--bg);stroke:var(--c);stroke-width:1.5}
.plot .b{fill:var(--c);fill-opacity:.2;stroke:none}
.plot .e{fill:none;stroke:var(--c);stroke-width:1.25}
.plot .whisker{fill:none;stroke:var(--ink);stroke-width:1.25}
.plot .pale{opacity:.45}
.plot .l,.plot .b,.plot .e,.plot .whisker{pointer-events:none}
.plot .h path{stroke:var(--soft);opacity:0}
.plot .h:hover path{opacity:.7}
.plot .f:hover{fill-opacity:.85}
.plot .p:hover{fill-opacity:1;stroke:var(--ink)}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}
.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}.c7{--c:var(--c7)}
";

/// How the page around the plots looks.
pub(crate) const PAGE: &str = "\
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);line-height:1.55;\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main,header,footer{max-width:54rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:2.75rem}
h1{font-size:1.85rem;line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:0}
h2{font-size:1.25rem;line-height:1.3;font-weight:650;letter-spacing:-.005em;margin:0 0 .6rem}
p{margin:.5rem 0 .9rem;max-width:44rem}
.lead{color:var(--soft);font-size:1.05rem;margin:.45rem 0 0}
section{margin-top:2.4rem;padding-top:1.5rem;border-top:1px solid var(--grid)}
figure{margin:1.3rem 0 1.6rem;overflow-x:auto}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(22rem,1fr));gap:1.5rem;margin:1.3rem 0 1.6rem}
.pair figure{margin:0}
.plot{display:block;width:100%;height:auto}
figure .plot{min-width:32rem}
.pair .plot{min-width:0}
.badge{display:inline-flex;align-items:baseline;gap:.5em;margin:1rem 0 0;padding:.28rem .85rem .32rem;\
border-radius:2rem;font-size:.92rem;font-weight:600;color:var(--v);border:1px solid var(--v);\
background:color-mix(in srgb,var(--v) 9%,transparent)}
section .badge{margin:.2rem 0 .6rem}
.pass{--v:var(--good)}.fail{--v:var(--bad)}.warn{--v:var(--warn)}.info{--v:var(--info)}
.facts{display:flex;flex-wrap:wrap;gap:1.1rem 2.4rem;margin:1.5rem 0 .3rem;padding:0}
.facts div{display:flex;flex-direction:column-reverse;justify-content:flex-end;padding-left:.9rem;\
border-left:3px solid var(--grid)}
.facts .star{border-left-color:var(--c0)}
.facts dt{color:var(--soft);font-size:.88rem;line-height:1.35;max-width:15rem}
.facts dd{margin:0;font-size:1.75rem;line-height:1.2;font-weight:650;letter-spacing:-.01em;\
font-variant-numeric:tabular-nums}
.facts dd span{font-size:1rem;font-weight:500;color:var(--soft);letter-spacing:0}
.scroll{overflow-x:auto;margin:1rem 0 1.5rem}
table{border-collapse:collapse;font-size:.94rem;font-variant-numeric:tabular-nums;min-width:60%}
caption{text-align:left;font-weight:600;padding-bottom:.45rem}
td{white-space:pre-line}
th,td{padding:.4rem .85rem .42rem;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--grid)}
thead th{color:var(--soft);font-size:.84rem;font-weight:600;line-height:1.3;vertical-align:bottom;\
border-bottom:1.5px solid var(--axis)}
th span{font-weight:400;white-space:nowrap}
th:first-child,td:first-child{padding-left:.5rem}
tbody td:first-child{white-space:nowrap}
tbody tr.remark td{white-space:normal}
tr.remark td{color:var(--soft);font-size:.88em;padding-top:0;border-bottom:1px solid var(--grid)}
tr:has(+ tr.remark) td{border-bottom:0;padding-bottom:.1rem}
tbody tr.remark:hover td{background:none}
.mark{color:var(--v);font-weight:600;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
.ci{color:var(--soft);font-size:.86em}
tr.best td{background:var(--tint);font-weight:650}
tbody tr:hover td{background:var(--tint)}
details .scroll{margin:.4rem .9rem 1rem;max-height:34rem;overflow-y:auto}
details{margin:.8rem 0;border:1px solid var(--grid);border-radius:.45rem}
summary{cursor:pointer;padding:.5rem .9rem;font-size:.94rem;color:var(--soft)}
summary:hover{color:var(--ink)}
details[open] summary{border-bottom:1px solid var(--grid)}
pre{margin:0;padding:.8rem .9rem;overflow:auto;max-height:30rem;font:.82rem/1.5 ui-monospace,\
'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;tab-size:2}
nav ol{columns:2 18rem;margin:.3rem 0 0;padding-left:1.3rem}
nav a{color:var(--info);text-decoration:none}
nav a:hover{text-decoration:underline}
footer{margin-top:3rem;padding-top:1rem;padding-bottom:2.5rem;color:var(--soft);font-size:.86rem}
@media print{
@page{margin:16mm}
html{font-size:12.5px}
body{font-size:1rem}
main,header,footer{max-width:none;padding-left:0;padding-right:0}
header{padding-top:0}
figure,table,.facts,details,tr{break-inside:avoid}
h2{break-after:avoid}
section{margin-top:1.4rem;padding-top:1rem}
nav{display:none}
figure,.scroll,pre{overflow:visible;max-height:none}
th,td{padding:.3rem .5rem}
pre{white-space:pre-wrap}
figure .plot{min-width:0}
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_colours_are_those_of_the_light_variables() {
        for (i, colour) in PALETTE.iter().enumerate() {
            assert!(VARIABLES.contains(&format!("--c{i}:{colour};")), "series {i}");
            assert!(PLOT.contains(&format!(".c{i}{{--c:var(--c{i})}}")), "class {i}");
        }
        for (name, colour) in [("bg", PAPER), ("ink", INK), ("soft", SOFT), ("grid", GRID), ("axis", AXIS)] {
            assert!(VARIABLES.contains(&format!("--{name}:{colour};")), "{name}");
        }
    }

    #[test]
    fn sheets_can_stand_inside_xml_and_name_no_resource() {
        for sheet in [VARIABLES, PLOT, PAGE] {
            assert!(!sheet.contains(['<', '&']));
            assert!(!sheet.contains("url(") && !sheet.contains("@import"));
        }
    }
}
