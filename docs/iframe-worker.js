// The search of the site runs in a worker. Browsers refuse workers of pages that are opened as files, so
// there this class runs the same script in a hidden frame. The name of this file tells mkdocs-material that
// it need not fetch another one from the network.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.appendChild(frame);
    const inner = frame.contentWindow;
    this.ready = new Promise((resolve) => {
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      inner.importScripts = (...urls) =>
        urls.reduce((before, path) => before.then(() => addScript(inner.document, path)), Promise.resolve());
      addScript(inner.document, url).then(resolve);
    });
    this.inner = inner;
  }

  postMessage(data) {
    this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.inner.frameElement.remove();
  }
}

function addScript(page, path) {
  return new Promise((resolve, reject) => {
    const script = page.createElement("script");
    script.src = path;
    script.onload = resolve;
    script.onerror = reject;
    page.body.appendChild(script);
  });
}

if (location.protocol === "file:") window.Worker = FrameWorker;
