"use strict";
(() => {
  const root = document.documentElement;

  // ── light, dark, or as the system has it ──
  const themes = ["auto", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("evalcore-theme") || "auto"; } catch { return "auto"; } };
  const button = document.getElementById("theme");
  let theme = stored();
  const paint = () => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    if (button) button.textContent = `Colours: ${theme}`;
  };
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try { localStorage.setItem("evalcore-theme", theme); } catch { /* a page from a file may have no storage */ }
      paint();
    });
  }
  paint();

  // ── tables that sort ──
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    const raw = cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
    const number = Number(raw);
    return raw !== "" && Number.isFinite(number) ? number : raw;
  };
  const compare = (a, b) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // what is not known stands last
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sortBy = (table, column, direction) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => (a === "" || b === "" ? compare(a, b) : direction * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  };
  const makeSortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (head.querySelector("button")) return;
      const toggle = document.createElement("button");
      toggle.type = "button";
      toggle.append(...head.childNodes);
      head.append(toggle);
      toggle.addEventListener("click", () => {
        sortBy(table, column, head.getAttribute("aria-sort") === "ascending" ? -1 : 1);
      });
    });
  };

  // ── tables that filter ──
  const filter = (controls) => {
    const table = document.getElementById(controls.dataset.for);
    if (!table) return;
    const words = controls.querySelector("input").value.trim().toLowerCase();
    const select = controls.querySelector("select");
    const only = select ? select.value : "";
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.cells[0].textContent.toLowerCase();
      const kinds = (row.dataset.kinds || "").split(" ");
      row.hidden = !(text.includes(words) && (!only || kinds.includes(only)));
      shown += !row.hidden;
    }
    controls.querySelector("output").textContent = `${shown} of ${table.tBodies[0].rows.length} shown`;
  };
  const makeFilterable = (controls) => {
    controls.hidden = false;
    controls.addEventListener("input", () => filter(controls));
    filter(controls);
  };

  const enhance = (scope) => {
    scope.querySelectorAll("table[data-sort]").forEach(makeSortable);
    scope.querySelectorAll("div.controls[data-for]").forEach(makeFilterable);
  };
  enhance(document);

  // ── a link to a trial opens it ──
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) {
      target.scrollIntoView();
      if (target.tagName === "DETAILS") target.querySelector("summary").focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", open);
  open();

  // ── a page of a running study brings itself up to date ──
  const where = root.dataset.live;
  if (!where) return;
  const waiting = where.endsWith("?wait=1"); // for a page that is being made: the answer comes when it is
  let version = null;
  const keep = (part, fresh) => { // what the reader chose stays chosen
    const chosen = [...part.querySelectorAll("input, select")].map((field) => field.value);
    const opened = [...part.querySelectorAll("details")].map((item) => item.open);
    const sorted = [...part.querySelectorAll("table[data-sort]")].map((table) => {
      const heads = [...table.tHead.rows[0].cells];
      const at = heads.findIndex((head) => head.hasAttribute("aria-sort"));
      return at < 0 ? null : [at, heads[at].getAttribute("aria-sort") === "ascending" ? 1 : -1];
    });
    const scrolled = [...part.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    fresh.querySelectorAll("input, select").forEach((field, i) => { if (chosen[i] !== undefined) field.value = chosen[i]; });
    fresh.querySelectorAll("details").forEach((item, i) => { if (opened[i] !== undefined) item.open = opened[i]; });
    part.replaceWith(fresh);
    enhance(fresh);
    fresh.querySelectorAll("table[data-sort]").forEach((table, i) => { if (sorted[i]) sortBy(table, ...sorted[i]); });
    fresh.querySelectorAll(".scroll").forEach((box, i) => { if (scrolled[i]) [box.scrollLeft, box.scrollTop] = scrolled[i]; });
  };
  const refresh = async () => {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return false;
    let whole = true; // a part in use is left alone, and asked for again
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const fresh of page.querySelectorAll("[data-part]")) {
      const part = document.getElementById(fresh.id);
      if (!part) { location.reload(); return true; }
      if (part.dataset.part === fresh.dataset.part) continue;
      if (part.contains(document.activeElement)) whole = false; else keep(part, fresh);
    }
    document.title = page.title;
    return whole;
  };
  const ask = async () => {
    try {
      const answer = await fetch(where, { cache: "no-store" });
      const now = await answer.text();
      if (waiting) {
        if (now || !answer.ok) { location.reload(); return; }
      } else if (answer.ok) {
        if (version === null || now === version || (await refresh())) version = now;
        root.dataset.connected = "yes";
      }
    } catch { root.dataset.connected = "no"; }
    setTimeout(ask, waiting ? 250 : document.hidden ? 10000 : 2000);
  };
  ask();
})();
