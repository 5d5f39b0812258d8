"use strict";
(() => {
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const PAGE_ROWS = 50;
  const INTERVAL_NAMES = ["Pending", "Running", "Preempted run", "Terminating"];
  const [NAME, QUEUE, PRIORITY, ARRIVAL, WAIT, FINISHED, STATE, ADMISSIONS, PREEMPTIONS, INTERVALS] = Array(10).keys();

  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "–";
    let rest = Math.max(seconds, 0);
    const parts = [];
    for (const [unit, name] of UNITS) {
      const count = Math.floor(rest / unit);
      rest %= unit;
      if (count > 0) parts.push(count + " " + name);
      if (parts.length && (parts.length === 2 || count === 0)) break;
    }
    return parts.length ? parts.join(" ") : "0 s";
  }

  function element(name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /* The text of a preemptor, which is a row or a name. */
  function preemptorName(data, by) {
    return typeof by === "number" ? data.rows[by][NAME] : by;
  }

  function preemptorNames(data, row) {
    return [...new Set(row[PREEMPTIONS].map(([, by]) => preemptorName(data, by)))].join(", ");
  }

  function describe(data, row) {
    let text = row[NAME] + ": ClusterQueue " + data.queues[row[QUEUE]] + ", priority " + row[PRIORITY] +
      ", arrival " + duration(row[ARRIVAL]) + ", wait " + duration(row[WAIT]) + ", " + data.states[row[STATE]] + ".";
    const intervals = row[INTERVALS] || [];
    const parts = [];
    for (let at = 0; at + 2 < intervals.length; at += 3) {
      parts.push(INTERVAL_NAMES[intervals[at]] + ": " + duration(intervals[at + 1]) + " to " + duration(intervals[at + 2]));
    }
    const limit = 6;
    if (parts.length > limit) parts.splice(limit, parts.length, "and " + (parts.length - limit) + " more");
    if (parts.length) text += " " + parts.join("; ") + ".";
    if (row[PREEMPTIONS].length) text += " Preempted by " + preemptorNames(data, row) + ".";
    return text;
  }

  /* The value by which a column is sorted. Absent times are last. */
  function sortValue(data, row, column) {
    switch (column) {
      case QUEUE: return data.queues[row[QUEUE]];
      case STATE: return data.states[row[STATE]];
      case PREEMPTIONS: return row[PREEMPTIONS].length;
      case PREEMPTIONS + 1: return preemptorNames(data, row);
      default: return row[column] === null ? Infinity : row[column];
    }
  }

  function compare(a, b) {
    return a < b ? -1 : a > b ? 1 : 0;
  }

  const tooltip = document.querySelector(".tooltip");

  function showTooltip(event, text) {
    tooltip.textContent = text;
    tooltip.hidden = false;
    tooltip.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - tooltip.offsetWidth - 8), 0) + "px";
    tooltip.style.top = Math.min(event.clientY + 16, innerHeight - tooltip.offsetHeight - 8) + "px";
  }

  function hideTooltip() {
    tooltip.hidden = true;
  }

  /* Shows the row of the table at the pointer. */
  function setUpPlot(figure) {
    const [left, length, until, interval] = figure.dataset.axis.split(" ").map(Number);
    const svg = figure.querySelector("svg");
    const table = figure.querySelector("details table");
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    svg.addEventListener("pointermove", (event) => {
      const area = svg.getBoundingClientRect();
      const x = (event.clientX - area.left) * svg.viewBox.baseVal.width / area.width - left;
      const row = table.tBodies[0].rows[Math.floor(x / length * until / interval)];
      if (x < 0 || x > length || !row) {
        hideTooltip();
        return;
      }
      const values = [...row.cells].slice(1).map((cell, at) => names[at + 1] + " " + cell.textContent);
      showTooltip(event, "From " + row.cells[0].textContent + ", mean over " + duration(interval) + ": " + values.join("; "));
    });
    svg.addEventListener("pointerleave", hideTooltip);
  }

  function setUpTable(number, data, select) {
    const table = document.getElementById("workloads-" + number);
    const controls = document.querySelector('form[data-table="' + number + '"]');
    const pager = document.querySelector('[data-pager="' + number + '"]');
    const status = pager.querySelector("[role=status]");
    const [search, queue, state] = ["search", "queue", "state"].map((id) => document.getElementById(id + "-" + number));
    const heads = [...table.tHead.rows[0].cells];
    let order = data.rows.map((_, at) => at);
    let shown = order;
    let page = 0;

    function cells(at) {
      const row = data.rows[at];
      return [data.queues[row[QUEUE]], row[PRIORITY], duration(row[ARRIVAL]), duration(row[WAIT]), duration(row[FINISHED]),
        data.states[row[STATE]], row[ADMISSIONS], row[PREEMPTIONS].length, preemptorNames(data, row)];
    }

    function draw() {
      const pages = Math.max(Math.ceil(shown.length / PAGE_ROWS), 1);
      page = Math.min(Math.max(page, 0), pages - 1);
      const rows = shown.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS).map((at) => {
        const made = element("tr");
        const head = element("th");
        head.scope = "row";
        if (select) {
          const button = element("button", data.rows[at][NAME]);
          button.type = "button";
          button.title = "Show in the Gantt chart";
          button.addEventListener("click", () => select(at));
          head.append(button);
        } else {
          head.textContent = data.rows[at][NAME];
        }
        made.append(head);
        cells(at).forEach((text, column) => {
          const cell = element("td", text);
          cell.className = heads[column + 1].className;
          made.append(cell);
        });
        return made;
      });
      table.tBodies[0].replaceChildren(...rows);
      status.textContent = shown.length === 0 ? "No workload matches." :
        "Workloads " + (page * PAGE_ROWS + 1) + " to " + (page * PAGE_ROWS + rows.length) + " of " + shown.length;
      const [previous, next] = pager.querySelectorAll("button");
      previous.disabled = page === 0;
      next.disabled = page === pages - 1;
    }

    function filter() {
      const text = search.value.toLowerCase();
      shown = order.filter((at) => {
        const row = data.rows[at];
        const isState = state.value === "" || (state.value === "preempted" ? row[PREEMPTIONS].length > 0 : row[STATE] === Number(state.value));
        return isState && (queue.value === "" || row[QUEUE] === Number(queue.value)) && row[NAME].toLowerCase().includes(text);
      });
      page = 0;
      draw();
    }

    heads.forEach((head, column) => {
      const button = element("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const isAscending = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
        const keys = data.rows.map((row) => sortValue(data, row, column));
        const sign = isAscending ? 1 : -1;
        order = order.slice().sort((a, b) => sign * compare(keys[a], keys[b]) || a - b);
        filter();
      });
    });
    controls.addEventListener("input", filter);
    controls.addEventListener("submit", (event) => event.preventDefault());
    pager.addEventListener("click", (event) => {
      const step = event.target.dataset.step;
      if (step) {
        page += Number(step);
        draw();
      }
    });
    controls.hidden = false;
    pager.hidden = false;
    draw();
  }

  function setUpGantt(number, data) {
    const figure = document.querySelector('figure[data-gantt="' + number + '"]');
    if (!figure || !data.gantt) return null;
    const { order, tops, rowHeight, left, length } = data.gantt;
    const box = figure.querySelector(".rows");
    const svg = box.querySelectorAll("svg")[1];
    const axis = box.querySelector(".axis");
    const selection = svg.querySelector(".selection");
    const detail = figure.querySelector(".detail");
    const victims = new Map();
    data.rows.forEach((row, victim) => row[PREEMPTIONS].forEach(([at, by]) => {
      if (!victims.has(by)) victims.set(by, []);
      victims.get(by).push([at, victim]);
    }));
    const position = new Map(order.map((at, index) => [at, index]));
    let selected = null;
    figure.querySelector(".hint").hidden = false;
    if (data.rows.length > 1000) box.classList.add("long");

    const scale = () => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width / 10;
    const x = (at) => left + Math.floor(at * length / data.until);
    const middle = (at) => tops[at] + rowHeight / 2;

    function rowAt(event) {
      const y = (event.clientY - svg.getBoundingClientRect().top) / scale();
      if (event.clientY < axis.getBoundingClientRect().bottom) return null;
      let low = 0;
      let high = order.length;
      while (low < high) {
        const center = (low + high) >> 1;
        if (tops[order[center]] + rowHeight <= y) low = center + 1; else high = center;
      }
      const at = order[low];
      return at !== undefined && tops[at] <= y ? at : null;
    }

    function path(className, commands) {
      const made = document.createElementNS(svg.namespaceURI, "path");
      made.setAttribute("class", className);
      made.setAttribute("d", commands);
      return made;
    }

    function link(at, preemptor, victim) {
      const [from, to] = [middle(preemptor), middle(victim)];
      const back = from < to ? -60 : 60;
      return [path("link", "M" + x(at) + " " + from + "V" + to), path("arrow", "M" + x(at) + " " + to + "l-30 " + back + "h60z")];
    }

    function select(at) {
      selected = at;
      const row = data.rows[at];
      const links = row[PREEMPTIONS].flatMap(([time, by]) => link(time, by, at));
      links.push(...(victims.get(at) || []).flatMap(([time, victim]) => link(time, at, victim)));
      const width = svg.viewBox.baseVal.width * 10;
      const frame = path("frame", "M10 " + tops[at] + "h" + (width - 20) + "v" + rowHeight + "H10z");
      selection.replaceChildren(frame, ...links);
      const names = [...new Set((victims.get(at) || []).map(([, victim]) => data.rows[victim][NAME]))];
      detail.textContent = describe(data, row) + (names.length ? " Preempted " + names.slice(0, 10).join(", ") +
        (names.length > 10 ? " and " + (names.length - 10) + " more" : "") + "." : "");
      const top = tops[at] * scale();
      const visible = box.clientHeight - axis.getBoundingClientRect().height;
      if (top < box.scrollTop || top + rowHeight * scale() > box.scrollTop + visible) box.scrollTop = top - visible / 2;
    }

    box.addEventListener("pointermove", (event) => {
      const at = rowAt(event);
      if (at === null) hideTooltip(); else showTooltip(event, describe(data, data.rows[at]));
    });
    box.addEventListener("pointerleave", hideTooltip);
    box.addEventListener("click", (event) => {
      const at = rowAt(event);
      if (at !== null) select(at);
    });
    box.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const index = selected === null ? 0 : position.get(selected) + step;
      if (order[index] !== undefined) select(order[index]);
    });
    return (at) => {
      select(at);
      figure.scrollIntoView({ block: "nearest" });
      box.focus({ preventScroll: true });
    };
  }

  document.querySelectorAll("figure[data-axis]").forEach(setUpPlot);
  document.querySelectorAll('script[type="application/json"]').forEach((script) => {
    const number = script.id.replace("data-", "");
    const data = JSON.parse(script.textContent);
    setUpTable(number, data, setUpGantt(number, data));
  });
})();
