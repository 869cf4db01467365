"use strict";
(() => {
  const element = (id) => document.getElementById(id);
  const search = element("search"), sort = element("sort"), shown = element("shown");
  const buttons = [...document.querySelectorAll("[data-filter]")];
  const plain = (text) => text.normalize("NFC").toLowerCase();
  const counted = (number) => number.toLocaleString("en-GB");
  let filter = "all", waiting = 0;

  const passes = (result, warned) => filter === "all" || (filter === "warned" ? warned : result === filter);

  function makeTextFilter() {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    return (text) => words.every((word) => text.includes(word));
  }

  function pageOfModels(main) {
    const cards = [...main.children].map((card, place) => ({
      card, place, text: "", name: card.querySelector("h2").textContent,
      triangles: Number(card.dataset.triangles), seconds: Number(card.dataset.seconds), warnings: Number(card.dataset.warnings),
    }));
    const names = new Intl.Collator("en-GB", { numeric: true });
    const orders = {
      place: (a, b) => a.place - b.place,
      name: (a, b) => names.compare(a.name, b.name) || a.place - b.place,
      triangles: (a, b) => b.triangles - a.triangles || a.place - b.place,
      seconds: (a, b) => b.seconds - a.seconds || a.place - b.place,
      warnings: (a, b) => b.warnings - a.warnings || a.place - b.place,
    };
    sort.addEventListener("change", () => {
      cards.sort(orders[sort.value]);
      main.append(...cards.map((one) => one.card));
    });
    addEventListener("beforeprint", () => main.querySelectorAll("details").forEach((one) => { one.open = true; }));
    return () => {
      const wanted = makeTextFilter();
      let number = 0;
      for (const one of cards) {
        one.text ||= plain(one.card.textContent);
        const visible = passes(one.card.dataset.result, one.warnings > 0) && wanted(one.text);
        one.card.hidden = !visible;
        one.card.style.display = visible ? "" : "none";
        number += visible;
      }
      shown.textContent = number === cards.length ? "" : `${counted(number)} of ${counted(cards.length)}`;
    };
  }

  function indexOfPages(data) {
    const most = 200, found = element("found"), list = element("list");
    const models = [];
    for (const [folder, ...names] of data.models) {
      for (let i = 0; i < names.length; i += 2) models.push({ folder, name: names[i], code: names[i + 1], text: "" });
    }
    return () => {
      const wanted = makeTextFilter(), rows = [];
      let number = 0;
      const everything = filter === "all" && !search.value.trim();
      models.forEach((one, place) => {
        if (everything || !passes(data.results[one.code >> 1], (one.code & 1) === 1)) return;
        one.text ||= plain(`${one.folder}/${one.name}`);
        if (!wanted(one.text) || ++number > most) return;
        const row = document.createElement("li"), link = document.createElement("a"), rest = document.createElement("span");
        link.href = `${data.stem}${String(Math.floor(place / data.a_page) + 1).padStart(3, "0")}${data.suffix}#m${place}`;
        link.textContent = one.name;
        rest.textContent = ` ${one.folder} · ${data.results[one.code >> 1]}${one.code & 1 ? ", with warnings" : ""}`;
        row.append(link, rest);
        rows.push(row);
      });
      found.replaceChildren(...rows);
      list.hidden = !everything;
      const more = number > most ? `, the first ${most} are shown` : "";
      shown.textContent = everything ? "" : `${counted(number)} of ${counted(models.length)}${more}`;
    };
  }

  const data = element("data");
  const update = data ? indexOfPages(JSON.parse(data.textContent)) : pageOfModels(element("models"));
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(update, 120); });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      filter = button.dataset.filter;
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      update();
    });
  }
  search.form.addEventListener("submit", (event) => { event.preventDefault(); update(); });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); }
    if (event.key === "Escape" && event.target === search) { search.value = ""; update(); }
  });
  document.documentElement.classList.add("js");
  if (search.value) update();
})();
