// Files are sent as soon as they are chosen or dropped, or along with their form, and one sees how far that has come. Without
// it, a button sends them.
function sendFiles() {
  for (const input of document.querySelectorAll("[data-upload]")) {
    const { form } = input;
    const bar = input.parentElement.querySelector("progress");
    const status = bar.parentElement;
    if (input.dataset.upload !== "along") {
      input.addEventListener("change", () => input.files.length && form.requestSubmit());
    }
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.responseType = "document"; // the policy of the page forbids to make one of text
      request.upload.addEventListener("progress", ({ loaded, total }) => {
        bar.value = loaded / total;
      });
      request.addEventListener("load", () => {
        if (request.status < 400 || !request.response) {
          location.assign(request.responseURL);
        } else {
          document.documentElement.replaceWith(request.response.documentElement);
          sendFiles();
        }
      });
      request.addEventListener("error", () => {
        status.hidden = true;
        input.disabled = false;
      });
      request.send(new FormData(form));
      status.hidden = false;
      input.disabled = true;
    });
  }
}
sendFiles();
