/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "report/html/page.h"

/* Variables named c0 to c9 are the hues of drawing.h. Light paper has dark hues and dark paper
 * light ones, each with a contrast of at least 4.5. Print is always light. */
const char *const weft_page_style[] = {
    ":root { --paper: #ffffff; --card: #ffffff; --ground: #f5f6f8; --ink: #16191d; --soft: "
    "#515b66; --grid: #e3e6ea; --edge: #dfe3e8; --good: #157347; --bad: #b02a37; --c0: "
    "#2364c4; --c1: #ac5500; --c2: #1c7a48; --c3: #7342c9; --c4: #bf2c5b; --c5: #0b7285; "
    "--c6: #8a6500; --c7: #5a6672; --c8: #9a3a9f; --c9: #875540; }\n",
    "@media (prefers-color-scheme: dark) { :root { --paper: #12161b; --card: #171c22; "
    "--ground: #0e1216; --ink: #e8ebef; --soft: #a3adb8; --grid: #2a313a; --edge: #2a313a; "
    "--good: #5fd38d; --bad: #ff8f8f; --c0: #6ea8fe; --c1: #ffa94d; --c2: #5fd38d; --c3: "
    "#b197fc; --c4: #ff8fab; --c5: #4dd0e1; --c6: #e8c547; --c7: #a4b0bb; --c8: #e59bea; "
    "--c9: #d8a98f; } }\n",
    "* { box-sizing: border-box; }\n",
    "html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }\n",
    "body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5; "
    "font-size: 15px; font-family: system-ui, -apple-system, \"Segoe UI\", Roboto, "
    "\"Helvetica Neue\", \"DejaVu Sans\", Arial, sans-serif; font-variant-numeric: "
    "tabular-nums; overflow-wrap: anywhere; }\n",
    "header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 24px; }\n",
    "header { padding-top: 36px; }\n",
    ".defs { position: absolute; }\n",
    ".over { margin: 0; color: var(--soft); font-size: 13px; letter-spacing: .02em; }\n",
    "h1 { margin: 2px 0 10px; font-size: 26px; line-height: 1.2; letter-spacing: -.01em; "
    "font-weight: 680; }\n",
    ".answer { margin: 0 0 20px; font-size: 18px; max-width: 62em; }\n",
    "h2 { margin: 0 0 4px; font-size: 17px; font-weight: 650; letter-spacing: -.005em; }\n",
    ".tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); "
    "gap: 1px; margin: 0 0 18px; background: var(--card); border: 1px solid var(--edge); "
    "border-radius: 10px; overflow: hidden; }\n",
    ".tiles div { padding: 12px 16px 11px; box-shadow: 0 0 0 1px var(--edge); }\n",
    "dt { color: var(--soft); font-size: 12.5px; }\n",
    "dd { margin: 0; font-size: 21px; font-weight: 620; letter-spacing: -.01em; line-height: "
    "1.3; }\n",
    "dd.sub { color: var(--soft); font-size: 12.5px; font-weight: 400; letter-spacing: 0; }\n",
    "nav { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-bottom: 18px; font-size: "
    "13.5px; }\n",
    "nav a { color: var(--c0); text-decoration: none; border-bottom: 1px solid transparent; }\n",
    "nav a:hover { border-color: currentColor; }\n",
    "section { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; "
    "padding: 18px 24px 16px; margin: 0 0 16px; }\n",
    "section > p { margin: 0 0 8px; color: var(--soft); max-width: 72em; }\n",
    "section.missing { background: none; border: none; padding: 0 25px; margin: 0 0 10px; "
    "display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; }\n",
    "section.missing h2 { font-size: 14px; color: var(--soft); margin: 0; }\n",
    "section.missing p { margin: 0; font-size: 13.5px; }\n",
    ".figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, "
    "100%), 1fr)); gap: 6px 28px; }\n",
    "figure { margin: 8px 0; min-width: 0; }\n",
    "figure:has(svg.large) { grid-column: 1 / -1; }\n",
    "figcaption { font-size: 13.5px; font-weight: 600; margin-bottom: 2px; }\n",
    ".wide { overflow-x: auto; }\n",
    "svg { display: block; width: 100%; height: auto; }\n",
    "svg.large { min-width: 760px; }\n",
    "svg text { font-size: 11px; fill: var(--soft); }\n",
    "svg .lane { font-size: 12px; fill: var(--ink); }\n",
    "svg .name { fill: var(--soft); }\n",
    "svg .in { font-size: 10px; fill: var(--card); pointer-events: none; }\n",
    ".grid { stroke: var(--grid); fill: none; }\n",
    ".line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }\n",
    ".line.ink { stroke: var(--ink); stroke-width: 1.4; }\n",
    ".dash { stroke-dasharray: 5 4; }\n",
    ".level { fill: none; stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 6 4; }\n",
    ".mark { stroke: var(--card); stroke-width: 1.5; }\n",
    ".ring { fill: none; stroke-width: 2; }\n",
    ".area { stroke: var(--card); stroke-width: .6; }\n",
    ".pale { opacity: .5; }\n",
    ".hatch { fill: url(#hatch); }\n",
    ".hatch-ground { fill: var(--card); }\n",
    ".hatch-line { stroke: var(--soft); stroke-width: 2; }\n",
    ".f0 { fill: var(--c0); } .s0 { stroke: var(--c0); } .c0 { color: var(--c0); } .f1 { "
    "fill: var(--c1); } .s1 { stroke: var(--c1); } .c1 { color: var(--c1); } .f2 { fill: "
    "var(--c2); } .s2 { stroke: var(--c2); } .c2 { color: var(--c2); } .f3 { fill: var(--c3); "
    "} .s3 { stroke: var(--c3); } .c3 { color: var(--c3); } .f4 { fill: var(--c4); } .s4 { "
    "stroke: var(--c4); } .c4 { color: var(--c4); } .f5 { fill: var(--c5); } .s5 { stroke: "
    "var(--c5); } .c5 { color: var(--c5); } .f6 { fill: var(--c6); } .s6 { stroke: var(--c6); "
    "} .c6 { color: var(--c6); } .f7 { fill: var(--c7); } .s7 { stroke: var(--c7); } .c7 { "
    "color: var(--c7); } .f8 { fill: var(--c8); } .s8 { stroke: var(--c8); } .c8 { color: "
    "var(--c8); } .f9 { fill: var(--c9); } .s9 { stroke: var(--c9); } .c9 { color: var(--c9); "
    "}\n",
    ".c10 { color: var(--ink); }\n",
    ".legend { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 2px 0 4px; padding: 0; "
    "list-style: none; font-size: 12.5px; color: var(--soft); }\n",
    ".legend i { display: inline-block; width: 12px; height: 11px; margin-right: 6px; "
    "border-radius: 2px; vertical-align: -1px; background: currentColor; }\n",
    ".legend .light { opacity: .5; height: 7px; vertical-align: 1px; }\n",
    ".legend .low { height: 6px; }\n",
    ".legend .hatched { background: repeating-linear-gradient(135deg, var(--soft) 0 2px, "
    "var(--card) 2px 5px); }\n",
    ".legend .line { height: 2px; width: 16px; vertical-align: 3px; border-radius: 0; }\n",
    ".legend .dashed { height: 0; width: 16px; vertical-align: 3px; border-top: 2px dashed; "
    "border-radius: 0; background: none; }\n",
    ".legend .ring { width: 10px; height: 10px; border: 2px solid; border-radius: 50%; "
    "background: none; }\n",
    "table { border-collapse: collapse; font-size: 13.5px; margin: 8px 0; min-width: "
    "min(100%, 420px); }\n",
    "caption { text-align: left; font-weight: 600; padding: 4px 0; }\n",
    "th { font-weight: 600; color: var(--soft); font-size: 12.5px; border-bottom: 1px solid "
    "var(--edge); }\n",
    "th, td { padding: 4px 18px 4px 0; text-align: left; vertical-align: baseline; "
    "overflow-wrap: normal; }\n",
    "td { border-bottom: 1px solid var(--grid); }\n",
    "td.l { max-width: 40em; overflow-wrap: break-word; }\n",
    ".r { text-align: right; white-space: nowrap; }\n",
    ".good { color: var(--good); } .bad { color: var(--bad); } .faint, .note { color: "
    "var(--soft); }\n",
    ".note { font-size: 13px; }\n",
    "details { margin-top: 8px; font-size: 13.5px; }\n",
    "summary { cursor: pointer; color: var(--soft); }\n",
    "pre { white-space: pre-wrap; font: 12px/1.45 ui-monospace, SFMono-Regular, Menlo, "
    "\"DejaVu Sans Mono\", monospace; }\n",
    "footer { color: var(--soft); font-size: 12.5px; padding-bottom: 32px; }\n",
    "@media (max-width: 600px) { header, main, footer { padding-left: 12px; padding-right: "
    "12px; } section { padding: 14px 14px 12px; } h1 { font-size: 22px; } .answer { "
    "font-size: 16px; } dd { font-size: 18px; } .tiles { grid-template-columns: 1fr 1fr; } }\n",
    "@page { size: A4; margin: 12mm; }\n",
    "@media print { :root { --paper: #ffffff; --card: #ffffff; --ground: #f5f6f8; --ink: "
    "#16191d; --soft: #515b66; --grid: #e3e6ea; --edge: #dfe3e8; --good: #157347; --bad: "
    "#b02a37; --c0: #2364c4; --c1: #ac5500; --c2: #1c7a48; --c3: #7342c9; --c4: #bf2c5b; "
    "--c5: #0b7285; --c6: #8a6500; --c7: #5a6672; --c8: #9a3a9f; --c9: #875540; } body { "
    "background: none; font-size: 9.5pt; } header, main, footer { padding: 0; max-width: "
    "none; } nav { display: none; } section { border-color: var(--edge); padding: 8px 12px; } "
    "svg.large { min-width: 0; } .figures { grid-template-columns: 1fr 1fr; } table { "
    "font-size: 8.5pt; min-width: 0; } th, td, td.l { padding-right: 8px; overflow-wrap: anywhere; "
    "} "
    "figure, tr, .tiles { break-inside: avoid; } h2 { break-after: avoid; } details { display: "
    "none; } * "
    "{ print-color-adjust: exact; -webkit-print-color-adjust: exact; } }\n",
    NULL};
