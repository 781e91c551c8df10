/* Search on file://. Browsers start no worker there, so the search runs in a hidden frame instead, behind the interface
   of a Worker. Loaded before the theme's own script. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        }
      });
      const page = this.frame.contentDocument;
      const script = (text, attributes = "") => `<script ${attributes}>${text}</` + "script>";
      // In a worker, postMessage goes to the page, and importScripts loads one script after the other.
      const setup = `
        window.postMessage = (data) => parent.postMessage(data, "*");
        window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((loaded) => {
          const element = document.createElement("script");
          element.src = url;
          element.onload = loaded;
          document.body.append(element);
        })), Promise.resolve());`;
      page.open();
      page.write(`<html><body>${script(setup)}${script("", `src="${url}"`)}</body></html>`);
      page.close();
      this.ready = new Promise((loaded) => this.frame.addEventListener("load", loaded));
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
