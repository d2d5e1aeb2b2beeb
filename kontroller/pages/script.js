
(function () {
  "use strict";
  var value = function (row, index) {
    var cell = row.cells[index], given = cell.getAttribute("data-v");
    return given === null ? cell.textContent.trim() : Number(given);
  };
  var compare = function (a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  var two = function (number) { return (number < 10 ? "0" : "") + number; };
  var day = function (when) { return when.getFullYear() + "-" + two(when.getMonth() + 1) + "-" + two(when.getDate()); };
  var clock = function (when) { return two(when.getHours()) + ":" + two(when.getMinutes()) + ":" + two(when.getSeconds()); };
  var here = function (when) { return (day(when) === when.toISOString().slice(0, 10) ? "" : day(when) + " ") + clock(when); };
  var beside = function (element, text) {
    var local = document.createElement("span");
    local.className = "local";
    local.textContent = text;
    element.parentNode.insertBefore(local, element.nextSibling);
  };
  var has = function (row, searched) {
    var text = row.textContent.toLowerCase();
    return searched.toLowerCase().split(/\s+/).every(function (word) { return text.indexOf(word) >= 0; });
  };
  var elsewhere = 0;
  document.querySelectorAll("time[datetime]").forEach(function (element) {
    var when = new Date(element.getAttribute("datetime"));
    if (!when.getTimezoneOffset()) return;
    elsewhere += 1;
    beside(element, here(when));
  });
  document.querySelectorAll("span[data-from]").forEach(function (element) {
    var from = new Date(element.getAttribute("data-from")), to = new Date(element.getAttribute("data-to"));
    if (!from.getTimezoneOffset() && !to.getTimezoneOffset()) return;
    elsewhere += 1;
    beside(element, here(from) + " to " + (day(from) === day(to) ? clock(to) : day(to) + " " + clock(to)));
  });
  if (elsewhere) {
    var zone = document.querySelector(".zone");
    zone.textContent = "Times are UTC. Times in italics are of " + Intl.DateTimeFormat().resolvedOptions().timeZone + ".";
    zone.hidden = false;
  }
  document.querySelectorAll("table[data-name]").forEach(function (table) {
    var body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
    var rows = Array.from(body.rows);
    heads.forEach(function (head, index) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") === "descending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        rows.sort(function (a, b) { var c = compare(value(a, index), value(b, index)); return up ? c : -c; });
        rows.forEach(function (row) { body.appendChild(row); });
      });
    });
    if (rows.length < 8) return;
    var search = document.createElement("input"), left = document.createElement("span");
    search.type = "search";
    search.placeholder = "Search these rows";
    search.setAttribute("aria-label", "Search: " + table.getAttribute("data-name"));
    left.className = "left";
    left.setAttribute("role", "status");
    search.addEventListener("input", function () {
      var shown = 0, wanted = search.value.trim();
      rows.forEach(function (row) {
        var fits = has(row, search.value);
        row.hidden = !fits;
        if (fits) shown += 1;
      });
      left.textContent = wanted ? shown + " of " + rows.length + " rows" : "";
    });
    var bar = document.createElement("div");
    bar.className = "search";
    bar.appendChild(search);
    bar.appendChild(left);
    table.parentNode.parentNode.insertBefore(bar, table.parentNode);
  });
  var named = /^#cluster=(.*)$/.exec(location.hash);
  if (named) {
    var name = decodeURIComponent(named[1]);
    document.querySelectorAll("#clusters tbody tr").forEach(function (row) {
      if (row.cells[0].textContent.trim() === name) location.replace("#" + row.id);
    });
  }
  document.querySelectorAll("a[href^='#']").forEach(function (lead) {
    lead.addEventListener("click", function () {
      var row = document.getElementById(lead.getAttribute("href").slice(1));
      var bar = row && row.tagName === "TR" ? row.closest(".table").previousElementSibling : null;
      if (!bar || bar.className !== "search") return;
      var searched = lead.getAttribute("data-search") || "";
      bar.firstChild.value = has(row, searched) ? searched : "";
      bar.firstChild.dispatchEvent(new Event("input"));
    });
  });
})();
