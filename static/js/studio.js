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

  // Theme, folded parts, selects that act at once

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

  const navigate = (select) => {
    const address = new URL(location.href);
    ["page", "open", "edit", "session"].forEach((name) => address.searchParams.delete(name));
    address.searchParams.set(select.name, select.value);
    location.assign(address);
  };

  document.addEventListener("change", (event) => {
    const { target } = event;
    if (target.matches("[data-navigate]")) navigate(target);
    else if (target.matches("[data-submit]")) target.form.submit();
    else if (target.matches("[data-pick-all]")) {
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
  };

  const focusTarget = (event, link) => {
    const place = find(link.hash);
    if (!place) return;
    event.preventDefault();
    const folded = place.closest("details");
    if (folded) folded.open = true;
    place.focus();
  };

  document.addEventListener("click", (event) => {
    const { target } = event;
    const menu = find("[data-menu][open]");
    if (menu && !menu.contains(target)) menu.open = false;
    if (target.closest("[data-dismiss]")) target.closest(".notice").remove();
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

  // Dialog: filled by htmx, emptied when closed

  const fillDialog = () => {
    const box = dialog();
    if (!box.firstElementChild) return;
    const before = document.activeElement?.id;
    if (!box.open) box.showModal();
    const again = before && box.contains(document.getElementById(before)) ? `#${before}` : "";
    const first =
      find("[aria-invalid=true]", box) ||
      (again && find(again, box)) ||
      find("input:not([type=hidden]), textarea, select", box) ||
      find("#dialog-title", box);
    first?.focus();
  };

  const closeDialog = () => dialog()?.open && dialog().close();
  document.addEventListener("dialog-close", closeDialog);
  document.addEventListener("close", (event) => event.target.replaceChildren(), true);

  // Rows

  const rows = () => all("[data-rows] [data-row]");
  const opener = (row) => row && find("[data-open]", row);
  const peeked = () => find(".peek-body")?.dataset.memory;
  let place = 0;

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
    const link = opener(next);
    if (!link) return;
    link.focus();
    next.scrollIntoView({ block: "nearest" });
    if (peeked() && peeked() !== next.dataset.row) link.click();
  };

  // htmx

  const on = (name, act) => document.addEventListener(`htmx:${name}`, (event) => act(event.detail, event));

  on("configRequest", ({ elt, formData, verb }) => {
    if (verb !== "get" || elt.id !== "page-form") return;
    [...formData].forEach(([name, value]) => value === "" && formData.delete(name));
  });

  let opened = "";
  on("beforeSwap", ({ target }) => {
    place = Math.max(rows().indexOf(activeRow()), 0);
    opened = target.id === "memories-peek" ? peeked() : "";
  });

  on("afterSwap", ({ target }) => {
    if (target.id === "dialog") fillDialog();
    if (!find("#memories-main")) return;
    markOpen();
    countPicked();
    if (opened && opened === peeked()) find("#peek-title").focus();
  });

  on("afterSettle", ({ target }) => {
    if (!/^memor(ies|y)-/.test(target.id)) return;
    const field = find("#row-form textarea");
    if (field && !field.form.contains(document.activeElement)) field.focus();
    else if (document.activeElement === document.body) {
      opener(rows()[Math.min(place, rows().length - 1)])?.focus();
    }
  });

  on("beforeRequest", ({ target }) => target.setAttribute("aria-busy", "true"));
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

  const SINGLE = {
    "/": () => (find("#q") || find("#play-q"))?.focus(),
    "?": () => click("#shortcuts"),
    j: () => move(1),
    k: () => move(-1),
    n: () => click("#new"),
    e: () => click("[data-edit]", activeRow()),
    x: () => click(".pick-row", activeRow()),
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
})();
