// Keys, dialogs, theme and focus. Every control also works without this file.
(() => {
  "use strict";

  const root = document.documentElement;
  const find = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const dialog = () => find("#dialog");
  const GO_MS = 1500;
  root.classList.add("js");

  const keep = (name, value) => {
    document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax`;
  };

  // Theme, folded parts

  const chooseTheme = (form, value) => {
    keep("theme", value);
    root.dataset.theme = value;
    all("button", form).forEach((b) => b.setAttribute("aria-pressed", String(b.value === value)));
  };

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-theme-form]")) return;
    event.preventDefault();
    chooseTheme(event.target, event.submitter.value);
  });

  document.addEventListener(
    "toggle",
    (event) => {
      const name = event.target.dataset?.remember;
      if (name) keep(name, event.target.open ? "open" : "folded");
    },
    true,
  );

  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.matches("[data-pick-all]")) {
      all(".pick-row").forEach((box) => (box.checked = target.checked));
    }
    if (target.matches("[data-pick-all], .pick-row")) countPicked();
  });

  document.addEventListener("input", (event) => {
    const twin = event.target.dataset?.twin;
    if (twin) find(`#${twin}`).value = event.target.value;
  });

  const countPicked = () => {
    const boxes = all(".pick-row");
    const picked = boxes.filter((box) => box.checked).length;
    const every = find("[data-pick-all]");
    all("[data-count]").forEach((place) => (place.textContent = picked));
    if (!every) return;
    every.checked = picked > 0 && picked === boxes.length;
    every.indeterminate = picked > 0 && picked < boxes.length;
  };

  // Clicks

  const copy = async (button) => {
    const field = find(`#${button.dataset.copy}`);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      document.execCommand("copy");
    }
    button.textContent = button.dataset.copied;
    button.focus();
  };

  const unfold = (place) => {
    const folded = place.closest("details");
    if (folded) folded.open = true;
  };

  const focusTarget = (event, link) => {
    const place = find(link.hash);
    if (!place) return;
    event.preventDefault();
    unfold(place);
    place.focus();
  };

  // The browser sends no form with a wrong value, and cannot point at one that is folded away.
  document.addEventListener("invalid", ({ target }) => unfold(target), true);

  const leaveMenu = (target) => {
    const menu = find("[data-menu][open]");
    if (menu && !menu.contains(target)) menu.open = false;
  };

  document.addEventListener("click", (event) => {
    const { target } = event;
    leaveMenu(target);
    if (target.closest("[data-dismiss]")) {
      mark();
      target.closest(".notice").remove();
      regain();
      makeRoom();
    }
    const closer = target.closest("[data-dialog-close]");
    if (closer?.closest("dialog")) {
      event.preventDefault();
      dialog().close();
    }
    const copier = target.closest("[data-copy]");
    if (copier) copy(copier);
    const jump = target.closest("a[data-focus]");
    if (jump) focusTarget(event, jump);
  });

  // Focus that a change took away goes to the control before it, never to the page's start

  const STOPS = "a[href], button:not([disabled]), input:not([type=hidden]), select, textarea, summary";
  const stops = (part) => (part ? all(STOPS, part).filter((e) => e.getClientRects().length) : []);
  let before = null;

  const mark = () => {
    const at = document.activeElement;
    const part = at?.closest("#notices, section[id], form[id]");
    before = part && { id: part.id, place: stops(part).indexOf(at) };
  };

  const regain = () => {
    if (document.activeElement !== document.body || !before) return;
    const left = stops(document.getElementById(before.id));
    (left[Math.max(before.place - 1, 0)] || find("#main")).focus({ preventScroll: !left.length });
    before = null;
  };

  // Notices stay in sight; what else sticks to the top makes room for them

  const makeRoom = () => {
    const bar = find(".bar");
    if (!bar) return;
    const end = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
    root.style.setProperty("--under-bar", `${end}px`);
    root.style.setProperty("--top", `${end + find("#notices").offsetHeight}px`);
  };
  window.addEventListener("resize", makeRoom);
  document.addEventListener("toggle", makeRoom, true);

  // Dialog: filled by htmx, emptied when closed

  let opener = null;

  const fillDialog = () => {
    const box = dialog();
    if (!box.firstElementChild) return;
    const was = document.activeElement?.id;
    if (!box.open) {
      opener = was;
      box.showModal();
    }
    const again = was && box.contains(document.getElementById(was)) ? `#${was}` : "";
    const first =
      find("[aria-invalid=true]", box) ||
      (again && find(again, box)) ||
      find("input:not([type=hidden]), textarea, select", box) ||
      find("#dialog-title", box);
    first?.focus();
  };

  const closeDialog = () => dialog()?.open && dialog().close();
  document.addEventListener("dialog-close", closeDialog);
  document.addEventListener(
    "close",
    (event) => {
      event.target.replaceChildren();
      // The control that opened it may have been drawn anew meanwhile.
      if (document.activeElement === document.body) document.getElementById(opener)?.focus();
    },
    true,
  );

  // Rows

  const rows = () => all("[data-rows] [data-row]");
  const linkOf = (row) => row && find("[data-open]", row);
  const peeked = () => find(".peek-body")?.dataset.memory;
  let [place, moving] = [0, false];

  const activeRow = () =>
    document.activeElement?.closest("[data-row]") || find(`[data-row="${peeked()}"]`);

  const markOpen = () => {
    rows().forEach((row) => {
      if (row.dataset.row === peeked()) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
  };

  const move = (step) => {
    const list = rows();
    const from = list.indexOf(activeRow());
    const next = list[from < 0 ? 0 : Math.min(Math.max(from + step, 0), list.length - 1)];
    const link = linkOf(next);
    if (!link) return;
    moving = true;
    link.focus();
    moving = false;
    next.scrollIntoView({ block: "nearest" });
    if (peeked() && peeked() !== next.dataset.row) link.click();
  };

  // In a narrow window the panel lies over the list: focus goes into it, and it goes when left

  const panel = () => {
    const body = find(".peek-body");
    return body && getComputedStyle(body).position === "fixed" ? body : null;
  };

  const leavePanel = (target) => {
    const body = panel();
    if (!body || moving || body.contains(target) || target.closest("dialog")) return;
    requestAnimationFrame(() => {
      const { left, top, width, height } = target.getBoundingClientRect();
      const over = document.elementFromPoint(left + width / 2, top + height / 2);
      if (body.contains(over)) find("[data-close]", body).click();
    });
  };

  document.addEventListener("focusin", ({ target }) => {
    leaveMenu(target);
    leavePanel(target);
  });

  // htmx

  const on = (name, act) => document.addEventListener(`htmx:${name}`, (event) => act(event.detail, event));

  on("configRequest", ({ elt, formData, verb }) => {
    if (verb !== "get" || elt.id !== "page-form") return;
    [...formData].forEach(([name, value]) => value === "" && formData.delete(name));
  });

  on("beforeSwap", () => {
    mark();
    // An undo brings back what was done in the row acted on last.
    const row = rows().indexOf(activeRow());
    if (row >= 0 || before?.id !== "notices") place = Math.max(row, 0);
  });

  on("afterSwap", ({ target }) => {
    if (target.id === "dialog") fillDialog();
    if (!find("#memories-main, #inbox-main")) return;
    markOpen();
    countPicked();
    if (target.id === "memories-peek" && panel()) find("#peek-title").focus();
  });

  const settleList = () => {
    const field = find("#row-form textarea");
    const list = rows();
    if (field && !field.form.contains(document.activeElement)) field.focus();
    else if (document.activeElement === document.body) {
      (linkOf(list[Math.min(place, list.length - 1)]) || find(".empty a"))?.focus();
    }
  };

  on("afterSettle", ({ target }) => {
    makeRoom();
    if (target.id === "dialog") return;
    const wrong = find(`#${CSS.escape(target.id)} [aria-invalid=true]`);
    if (wrong) {
      unfold(wrong);
      wrong.focus();
    } else if (/^(memor(ies|y)|inbox)-/.test(target.id)) settleList();
    else regain();
  });

  // Where its part of the page was drawn anew meanwhile, the control that asked is no longer in
  // it; from outside, htmx neither finds where the answer goes nor is its event heard.
  const keepAttached = ({ target }) => {
    if (target.isConnected) return;
    const shelf = document.createElement("div");
    shelf.hidden = true;
    shelf.append(target);
    document.body.append(shelf);
    setTimeout(() => shelf.remove());
  };

  on("beforeRequest", ({ elt, target }, event) => {
    elt.addEventListener("htmx:beforeOnLoad", keepAttached, { once: true });
    // Opening the row that is open already leads into its panel.
    if (target.id === "memories-peek" && elt.closest("[data-row]")?.dataset.row === peeked()) {
      event.preventDefault();
      find("#peek-title").focus();
    } else target.setAttribute("aria-busy", "true");
  });
  on("afterRequest", ({ target }) => target.removeAttribute("aria-busy"));

  on("xhr:progress", ({ loaded, total }, event) => {
    const bar = event.target.matches?.("[data-upload]") && find("progress", event.target);
    if (!bar || !total) return;
    bar.hidden = false;
    bar.value = (100 * loaded) / total;
  });

  const fail = () => {
    const text = find("#failure").content;
    const body = dialog().open && find(".dialog-body", dialog());
    if (body) body.prepend(text.cloneNode(true));
    else find("#notices").replaceChildren(text.cloneNode(true));
  };
  ["sendError", "responseError", "timeout"].forEach((name) => on(name, fail));

  // Keys

  const click = (selector, from = document) => {
    const control = from && find(selector, from);
    // A dialog gives the focus back to where it was when it opened.
    control?.focus();
    control?.click();
  };
  let going = 0;

  const DELETE_PICKED = ".bulk-actions button[value=delete]";
  const DELETE_ROW = "[data-row]:focus-within button[name=delete]";

  const SINGLE = {
    "/": () => find("#q, #play-q, #ask-q")?.focus(),
    "?": () => click("#shortcuts"),
    u: () => find("#notices [data-undo]")?.click(),
    d: () => find(find(".pick-row:checked") ? DELETE_PICKED : DELETE_ROW)?.click(),
    j: () => move(1),
    k: () => move(-1),
    n: () => click("#new"),
    e: () => click("[data-edit]", activeRow() || find(".reader")),
    x: () => click(".pick-row", activeRow()),
    a: () => click("[data-accept]", activeRow()),
    r: () => click("[data-reject]", activeRow()),
    g: () => (going = Date.now()),
  };

  const escape = (target) => {
    const menu = find("[data-menu][open]");
    if (dialog()?.open) return;
    if (menu) {
      menu.open = false;
      find("summary", menu).focus();
    } else if (find("[data-cancel]")) click("[data-cancel]");
    else if (target.type === "search" && target.value) return; // the browser empties the field
    else if (target.closest("#page-form")) target.blur();
    else click("[data-close]");
  };

  const isTyping = (target) =>
    target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=range])");
  const sendsOnEnter = (target) => target.matches("[data-row-form] textarea, [data-submit-enter]");

  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    // While an input method is composing, Enter and Escape belong to it.
    if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key === "Escape") return escape(target);
    if (key === "Enter" && !event.shiftKey && sendsOnEnter(target)) {
      event.preventDefault();
      target.form.requestSubmit();
      return;
    }
    if (document.body.dataset.keys !== "on" || isTyping(target) || dialog()?.open) return;
    const tab = Date.now() - going < GO_MS && find(`[data-go="${CSS.escape(key)}"]`);
    going = 0;
    const act = tab ? () => tab.click() : SINGLE[key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  countPicked();
  makeRoom();
})();
