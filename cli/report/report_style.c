/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The style sheet of a report: light mode, dark mode (by the system setting) and print.
 *
 * The series colors are the Okabe-Ito palette, which is distinguishable with any kind of color vision, darkened or
 * lightened until each has a contrast of at least 3 : 1 against its background.
 */
#include "report/report.h"

const char *const report_style[] = {
    ":root{color-scheme:light "
    "dark;--page:#fff;--ink:#1c2128;--soft:#59636e;--rule:#d9dfe5;--card:#f5f7f9;--link:#0b5cad;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#a8478a;--c4:#a87400;--c5:#5a6472;--hit:0 114 178;--miss:213 94 0;"
    "--on:#fff;--note:#fff6e0;--note-rule:#e0b34c}\n",
    "@media "
    "(prefers-color-scheme:dark){:root{--page:#0f1318;--ink:#e4e9ee;--soft:#9ba6b2;--rule:#2c343d;--card:#171c23;"
    "--link:#6cb6ff;--c0:#56b4e9;--c1:#ff8f4d;--c2:#34c99b;--c3:#e08fc4;--c4:#e6b73c;--c5:#aab4bf;--hit:86 180 233;"
    "--miss:255 143 77;--on:#0f1318;--note:#2a2413;--note-rule:#8a6d2a}}\n",
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue','Liberation Sans',Arial,sans-serif;font-variant-numeric:tabular-nums}\n"
    "main,header,footer{max-width:1120px;margin:0 auto;padding:0 20px}\n"
    "a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\n",
    "header{padding-top:36px}\n"
    "h1{font-size:30px;line-height:1.2;margin:0 0 6px;letter-spacing:-.015em}\n"
    "h2{font-size:20px;margin:0 0 4px;letter-spacing:-.01em}\n"
    "h3{font-size:15px;margin:0;font-weight:600}\n"
    "p{margin:0 0 12px;max-width:78ch}\n"
    ".lead,.soft{color:var(--soft)}.brand{color:var(--soft);font-size:13px;font-weight:600;letter-spacing:.08em;"
    "text-transform:uppercase;margin:0 0 8px}\n"
    "code,.words{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:.88em;"
    "overflow-wrap:anywhere}\n",
    "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:18px 0 0;padding:10px 0;"
    "border-top:1px solid var(--rule);border-bottom:1px solid var(--rule);font-size:14px}\n"
    "section{margin:34px 0 0}section>.lead{margin-bottom:8px}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(47%,225px),1fr));gap:12px;margin:20px 0 "
    "0;padding:0}\n"
    ".cards div{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:12px 14px}\n"
    ".cards dt{color:var(--soft);font-size:13px}.cards dd{margin:2px 0 0;font-size:22px;font-weight:600;"
    "letter-spacing:-.01em;line-height:1.3}.cards dd small{display:block;font-size:12.5px;font-weight:400;"
    "color:var(--soft);letter-spacing:0}\n",
    ".note{background:var(--note);border-left:3px solid var(--note-rule);padding:9px 14px;margin:14px 0 0;"
    "border-radius:0 6px 6px 0;font-size:14px;max-width:none}\n"
    ".grid2{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:20px}\n"
    ".single{max-width:720px}.plan h3{margin-bottom:10px}.plan{grid-template-columns:repeat(auto-fit,minmax(min(100%,"
    "360px),1fr));gap:24px 40px}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:14px 16px 10px;"
    "min-width:0}figcaption{margin:0 0 6px}\n"
    "figure>svg{display:block;width:100%;height:auto}\n",
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 18px;margin:0 0 6px;padding:0;font-size:13px;"
    "color:var(--soft)}.legend svg{width:30px;height:12px;margin-right:6px;vertical-align:-1px}\n"
    "svg text{fill:var(--soft);font-size:11.5px}svg .label{font-size:12px;fill:var(--ink)}\n"
    ".grid{stroke:var(--rule);stroke-width:1;fill:none}.axis{stroke:var(--soft);stroke-width:1;fill:none}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
    ".dots{fill:none;stroke-width:5;stroke-linecap:round;stroke-opacity:.3}.dots.c0{stroke:var(--c0)}.dots.c1{stroke:"
    "var(--c1)}.dots.c2{stroke:var(--c2)}.dots.c3{stroke:var(--c3)}\n"
    ".d1{stroke-dasharray:7 5}.d2{stroke-dasharray:2 5}.d3{stroke-dasharray:9 4 2 4}.d4{stroke-dasharray:.1 "
    "5}\n",
    ".line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}"
    ".line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}\n"
    ".m.c0,.bar.c0{fill:var(--c0)}.m.c1,.bar.c1{fill:var(--c1)}.m.c2,.bar.c2{fill:var(--c2)}.m.c3,.bar.c3{fill:"
    "var(--c3)}.m.c4,.bar.c4{fill:var(--c4)}.m.c5,.bar.c5{fill:var(--c5)}.m{stroke:var(--card);stroke-width:1.2}\n"
    ".swatch{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:8px}\n"
    ".swatch.c0{background:var(--c0)}.swatch.c1{background:var(--c1)}.swatch.c2{background:var(--c2)}"
    ".swatch.c3{background:var(--c3)}.swatch.c4{background:var(--c4)}.swatch.c5{background:var(--c5)}\n",
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-size:14px}caption{text-align:left;color:var(--soft);padding:0 0 6px;"
    "caption-side:top}\n"
    "th,td{padding:5px 14px 5px 0;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top}\n"
    "thead th{color:var(--soft);font-weight:600;font-size:13px;vertical-align:bottom}tbody th{font-weight:500}\n"
    ".n{text-align:right;white-space:nowrap}th.n,td.n{padding-left:14px;padding-right:0}.n+th:not(.n),.n+td:not(.n)"
    "{padding-left:22px}.full{width:100%}\n"
    ".words{margin:0;padding:0 0 0 18px}.words li{margin:0 0 5px;padding-left:4px}\n",
    ".confusion th,.confusion td{padding:0;border:1px solid var(--page);text-align:center;font-size:13px;height:30px;"
    "min-width:46px;vertical-align:middle}.confusion tbody th{text-align:right;padding:0 10px 0 0;font-weight:600;"
    "max-width:180px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}.confusion thead th{max-width:90px;"
    "overflow:hidden;text-overflow:ellipsis;padding:0 4px;white-space:nowrap}.confusion td{border-radius:3px}\n"
    ".confusion .zero{color:var(--rule)}.confusion .strong{color:var(--on)}.confusion .rim{color:var(--soft);"
    "padding:0 0 0 10px}\n",
    ".map{display:block;width:100%;height:auto}.map .rim{fill:var(--soft)}.map .name{fill:var(--ink);font-weight:600}"
    ".map .count{fill:var(--ink)}.map .strong{fill:var(--on)}.map "
    ".ground{fill:var(--card)}.pairs{margin-top:20px}#options p{margin-top:12px}\n",
    ".images{list-style:none;display:flex;flex-wrap:wrap;gap:10px;margin:0;padding:0}.images li{text-align:center;"
    "font-size:12px;color:var(--soft)}.images img{display:block;width:44px;height:44px;object-fit:contain;"
    "image-rendering:pixelated;border-radius:4px;border:1px solid var(--rule);background:#000}\n"
    "details{margin:6px 0 0;font-size:13px}summary{cursor:pointer;color:var(--soft)}details table{margin:8px 0 4px;"
    "font-size:13px}details .scroll{max-height:280px;overflow:auto}\n"
    "footer{margin-top:44px;padding-top:14px;padding-bottom:36px;color:var(--soft);font-size:13px}\n",
    "@media print{:root{color-scheme:light;--page:#fff;--ink:#000;--soft:#444;--rule:#bbb;--card:#fff;--link:#000;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#a8478a;--c4:#a87400;--c5:#5a6472;--hit:0 114 178;--miss:213 94 0;"
    "--on:#fff;--note:#fff}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}body{font-size:11pt}nav,details"
    "{display:none}header{padding-top:0}.cards{grid-template-columns:repeat(4,1fr)}.grid2{grid-template-columns:1fr "
    "1fr;gap:12px}section{margin-top:22px}figure,table,.cards{break-inside:avoid}h2,h3"
    "{break-after:avoid}}\n",
    NULL};
