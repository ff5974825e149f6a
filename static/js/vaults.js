// Vaults: many files, dropped or chosen, are sent one after the other, each with its outcome; a
// citation shows its passage; a page closes with its vault. Without this file the form sends all at
// once, and links lead there.
(() => {
  "use strict";

  const FORM = "[data-files]";
  const within = (event) => event.target.closest?.(FORM);

  ["dragover", "dragleave", "drop"].forEach((name) =>
    document.addEventListener(name, (event) => {
      const form = within(event);
      if (!form) return;
      event.preventDefault();
      const field = form.querySelector("input[type=file]");
      field.classList.toggle("is-over", name === "dragover");
      if (name === "drop") field.files = event.dataTransfer.files;
    }),
  );

  const send = async (form, file) => {
    const data = new FormData(form);
    data.delete("files");
    data.append("files", file);
    const headers = { "HX-Request": "true", "HX-Target": "vault-files" };
    const answer = await fetch(form.action, { method: "POST", body: data, headers });
    const away = answer.headers.get("HX-Redirect");
    if (away) location.assign(away);
    const part = document.createElement("template");
    part.innerHTML = await answer.text();
    const rows = [...part.content.querySelectorAll("#vault-files tbody tr")];
    if (!rows.length) throw new Error("no outcome");
    return rows;
  };

  const failed = () =>
    document.querySelector("#notices").replaceChildren(document.querySelector("#failure").content.cloneNode(true));

  document.addEventListener("submit", async (event) => {
    const form = within(event);
    const files = form ? [...form.querySelector("input[type=file]").files] : [];
    if (!files.length) return;
    event.preventDefault();
    const [bar, button] = [form.querySelector("progress"), form.querySelector("button")];
    const list = document.querySelector("#vault-files");
    [bar.hidden, bar.value, button.disabled, list.hidden] = [false, 0, true, false];
    try {
      for (const [place, file] of files.entries()) {
        list.querySelector("tbody").append(...(await send(form, file)));
        bar.value = (100 * (place + 1)) / files.length;
      }
      form.querySelector("input[type=file]").value = "";
    } catch {
      failed();
    }
    button.disabled = false;
    button.focus();
  });

  // An open page asks whether its vault is still unlocked, and leaves when it is not. That somebody
  // writes is a use of the vault: it must not lock under their hands.
  let typed = false;
  document.addEventListener("input", () => (typed = true));
  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.elt.id !== "vault-watch") return;
    if (typed) detail.parameters.typed = "1";
    typed = false;
  });

  // Beside the answer its passage is scrolled to; below the answer the page is.
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (detail.target.id !== "vault-source") return;
    const [part, mark] = ["#vault-source", "#chunk"].map((name) => document.querySelector(name));
    const text = mark?.closest(".source-text");
    if (!text) return;
    if (getComputedStyle(part).position === "sticky") {
      text.scrollTop += mark.getBoundingClientRect().top - text.getBoundingClientRect().top - 40;
    } else mark.focus();
  });
})();
