// Aileron's actions as tools of Pi, which has no MCP client: this extension is one.
// It starts `aileron-mcp`, speaks JSON-RPC to it in lines, and ends it with the session.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const RELAY = __RELAY__;
const BASES = __BASES__; // provider -> base URL of its models, where that is not its own
const REFUSED = __REFUSED__; // tools of Pi's own that Aileron's stand for
const PREFIX = "mcp__aileron__";
const START_SECONDS = 60;

export default function (pi) {
  for (const [name, baseUrl] of Object.entries(BASES)) pi.registerProvider(name, { baseUrl });
  let child = null;
  let next = 1;
  let instructions = "";
  const waiting = new Map(); // id -> { resolve, reject, update }

  const failAll = (why) => {
    for (const each of waiting.values()) each.reject(new Error(why));
    waiting.clear();
  };
  const send = (message) => {
    if (child?.stdin.writable) child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  };
  const request = (method, params, { signal, update } = {}) =>
    new Promise((resolve, reject) => {
      if (!child) return reject(new Error("aileron-mcp is not running; start Pi again"));
      const id = next++;
      waiting.set(id, { resolve, reject, update });
      signal?.addEventListener("abort", () => {
        if (!waiting.delete(id)) return;
        send({ method: "notifications/cancelled", params: { requestId: id, reason: "aborted" } });
        reject(new Error("aborted"));
      });
      const meta = update ? { _meta: { progressToken: id } } : {};
      send({ id, method, params: { ...params, ...meta } });
    });

  const take = (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (message.id !== undefined && (message.result !== undefined || message.error !== undefined)) {
      const each = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) each?.reject(new Error(message.error.message));
      else each?.resolve(message.result);
    } else if (message.id !== undefined) {
      send({ id: message.id, ...(message.method === "ping" ? { result: {} } : { error: { code: -32601, message: "not here" } }) });
    } else if (message.method === "notifications/progress") {
      const { progressToken, message: text } = message.params ?? {};
      if (text) waiting.get(progressToken)?.update?.({ content: [{ type: "text", text }], details: undefined });
    } else if (message.method === "notifications/tools/list_changed") {
      list().catch(() => {});
    }
  };

  const known = new Set();
  const list = async () => {
    const found = new Set();
    let cursor;
    do {
      const page = await request("tools/list", cursor ? { cursor } : {});
      for (const tool of page.tools) {
        found.add(PREFIX + tool.name);
        register(tool);
      }
      cursor = page.nextCursor;
    } while (cursor);
    const gone = [...known].filter((name) => !found.has(name));
    known.clear();
    for (const name of found) known.add(name);
    if (gone.length) pi.setActiveTools(pi.getActiveTools().filter((name) => !gone.includes(name)));
  };

  const register = (tool) =>
    pi.registerTool({
      name: PREFIX + tool.name,
      label: tool.title ?? tool.name,
      description: tool.description ?? tool.name,
      parameters: tool.inputSchema,
      async execute(_id, params, signal, onUpdate) {
        const result = await request("tools/call", { name: tool.name, arguments: params }, { signal, update: onUpdate });
        const text = (result.content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n");
        if (result.isError) throw new Error(text);
        return { content: [{ type: "text", text }], details: result.structuredContent };
      },
    });

  pi.on("session_start", async () => {
    if (child) return;
    child = spawn(RELAY, [], { stdio: ["pipe", "pipe", "inherit"] });
    child.on("error", (error) => {
      child = null;
      failAll(`${RELAY} did not start: ${error.message}`);
    });
    child.on("exit", () => {
      child = null;
      failAll("aileron-mcp has ended; start Pi again");
    });
    child.stdin.on("error", () => {});
    createInterface({ input: child.stdout }).on("line", take);
    const late = AbortSignal.timeout(START_SECONDS * 1000);
    const hello = await request(
      "initialize",
      { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "pi", version: "aileron" } },
      { signal: late },
    );
    instructions = hello.instructions ?? "";
    send({ method: "notifications/initialized" });
    await list();
  });

  pi.on("before_agent_start", (event) => {
    const active = pi.getActiveTools();
    if (active.some((name) => REFUSED.includes(name))) // by `--tools`, or another extension
      pi.setActiveTools(active.filter((name) => !REFUSED.includes(name)));
    return instructions ? { systemPrompt: `${event.systemPrompt}\n\n${instructions}` } : undefined;
  });
  pi.on("tool_call", (event) =>
    REFUSED.includes(event.toolName)
      ? { block: true, reason: `${event.toolName} is off in this session: call the tool of Aileron's that does the same` }
      : undefined,
  );

  pi.on("session_shutdown", () => {
    const ending = child;
    child = null;
    ending?.stdin.end();
  });
}
