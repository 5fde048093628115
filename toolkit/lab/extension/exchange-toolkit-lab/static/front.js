// An extension of JupyterLab, as it loads it: a container of one module, which needs no building.
// The tabs of the workspace begin without kernels (workspace.py); each gets its kernel when it
// first comes to the front. Without this, "Run All Cells" there would run the first cell alone.
(() => {
  async function startKernel(widget) {
    const session = widget?.sessionContext;
    if (!session) return;
    await widget.context?.ready;
    await session.ready;
    const { shouldStart, autoStartDefault } = session.kernelPreference;
    if (shouldStart !== false || !autoStartDefault || session.session?.kernel) return;
    session.kernelPreference = { ...session.kernelPreference, shouldStart: true };
    await session.startKernel();
  }

  const plugin = {
    id: "exchange-toolkit-lab:front",
    description: "Starts the kernel of a notebook when its tab first comes to the front.",
    autoStart: true,
    activate: (app) => {
      // Each tab is the current one for a moment while the workspace is restored.
      app.restored.then(() => {
        app.shell.currentChanged.connect((_, { newValue }) => startKernel(newValue));
        return startKernel(app.shell.currentWidget);
      });
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["exchange-toolkit-lab"] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
