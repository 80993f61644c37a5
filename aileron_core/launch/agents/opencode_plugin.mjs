// Takes from every agent of OpenCode's the tools that Aileron's stand for, whichever configuration grants them.
// A permission alone is not enough: an agent's own, in a project's file, would count over it.
const OFF = __OFF__; // permissions, which are the names of tools but for those that "edit" stands for
const EDITS = ["write", "patch", "multiedit", "apply_patch"];

const without = (permission) => {
  const kept = typeof permission === "string" ? { "*": permission } : { ...permission };
  for (const name of OFF) delete kept[name]; // the last rule counts, so it must be a new last one
  return { ...kept, ...Object.fromEntries(OFF.map((name) => [name, "deny"])) };
};

export const Aileron = async () => ({
  config: async (config) => {
    config.permission = without(config.permission);
    for (const agent of Object.values(config.agent ?? {})) if (agent) agent.permission = without(agent.permission);
  },
  "tool.execute.before": async ({ tool }) => {
    if (OFF.includes(tool) || EDITS.includes(tool))
      throw new Error(`${tool} is off in this session: call the tool of Aileron's that does the same`);
  },
});
