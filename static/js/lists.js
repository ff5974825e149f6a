// Lists that lead elsewhere: the key in the bar, the language. Without this file a button does it.
(() => {
  "use strict";

  const navigate = (select) => {
    const address = new URL(location.href);
    ["page", "open", "edit", "session"].forEach((name) => address.searchParams.delete(name));
    address.searchParams.set(select.name, select.value);
    location.assign(address);
  };

  // Arrow keys and letters step through a closed list, each step a change: a list that leads
  // elsewhere then waits for Enter, or until it is left. A choice in the open list acts at once.
  let [stepping, chosen] = [false, null];
  const LEADS = "[data-navigate], [data-submit]";

  const lead = (select) => {
    chosen = null;
    if (select.matches("[data-navigate]")) navigate(select);
    else select.form.submit();
  };

  ["keydown", "keypress"].forEach((name) =>
    document.addEventListener(name, (event) => {
      if (!event.target.matches(LEADS)) return;
      stepping = true;
      setTimeout(() => (stepping = false));
      if (event.key !== "Enter" || chosen !== event.target) return;
      event.preventDefault();
      lead(chosen);
    }),
  );

  document.addEventListener("focusout", ({ target }) => target === chosen && lead(target));

  document.addEventListener("change", ({ target }) => {
    if (!target.matches(LEADS)) return;
    if (stepping) chosen = target;
    else lead(target);
  });

  // A link to a file of what the list shows: the filters may have changed since it was drawn.
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a[data-with-filters]");
    if (!link) return;
    const [address, shown] = [new URL(link.href), new URLSearchParams(location.search)];
    shown.set("format", address.searchParams.get("format"));
    address.search = shown;
    link.href = address;
    link.closest("[data-menu]").open = false;
  });
})();
