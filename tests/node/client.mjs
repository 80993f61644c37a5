// Official MCP clients, told by JSON lines on stdin what to do: see TypeScript in packages.py.
//
//   {"n", "do": "connect", "client", "package": "sdk"|"client", "url", "token"} or {..., "command", "env"}
//   {"n", "do": "tools"|"close", "client"}
//   {"n", "do": "call", "client", "tool", "arguments", "as"?}    "as": a name to cancel it by
//   {"n", "do": "cancel", "client", "as"}
//
// Answers are {"re": n, "value"} or {"re": n, "threw"}; events {"client", "heard", ...}.

import * as readline from 'node:readline';

import * as current from '@modelcontextprotocol/client';
import { StdioClientTransport as CurrentStdio } from '@modelcontextprotocol/client/stdio';
import { Client as SdkClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as SdkStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as SdkHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const clients = new Map();
const calls = new Map();

function say(value) {
  process.stdout.write(JSON.stringify(value) + '\n');
}

// The package `sdk` speaks up to 2025-11-25; `client` asks for 2026-07-28 first.
const kinds = {
  sdk: { Client: SdkClient, Stdio: SdkStdio, Http: SdkHttp, options: {} },
  client: {
    Client: current.Client,
    Stdio: CurrentStdio,
    Http: current.StreamableHTTPClientTransport,
    options: { versionNegotiation: { mode: 'auto' } },
  },
};

const actions = {
  async connect({ client: name, package: kind, url, token, command, env }) {
    const { Client, Stdio, Http, options } = kinds[kind];
    const onChanged = (error, tools) =>
      say({ client: name, heard: 'tools', error: error && String(error), tools: tools?.map((tool) => tool.name) });
    const client = new Client(
      { name: `typescript-${kind}`, version: '1.0.0' },
      { ...options, listChanged: { tools: { onChanged } } },
    );
    client.onerror = (error) => say({ client: name, heard: 'error', message: String(error) });
    client.onclose = () => say({ client: name, heard: 'closed' });
    const transport = url
      ? new Http(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
      : new Stdio({ command, env, stderr: 'inherit' });
    await client.connect(transport);
    clients.set(name, client);
    return {
      server: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions(),
      protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
    };
  },

  async tools({ client }) {
    return (await clients.get(client).listTools()).tools;
  },

  async call({ client: name, tool, arguments: args, as }) {
    const client = clients.get(name);
    const stop = new AbortController();
    if (as) calls.set(as, stop);
    const options = {
      signal: stop.signal,
      timeout: 60_000,
      onprogress: (progress) => say({ client: name, heard: 'progress', tool, ...progress }),
    };
    const parameters = { name: tool, arguments: args };
    // The older package takes a result schema between the two.
    return client instanceof SdkClient
      ? client.callTool(parameters, undefined, options)
      : client.callTool(parameters, options);
  },

  async cancel({ as }) {
    calls.get(as).abort('not wanted any more');
  },

  async close({ client }) {
    await clients.get(client).close();
    clients.delete(client);
  },
};

const working = [];
for await (const line of readline.createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  working.push(
    actions[command.do](command).then(
      (value) => say({ re: command.n, value: value ?? null }),
      (error) => say({ re: command.n, threw: String(error), code: error.code ?? null }),
    ),
  );
}
await Promise.all([...clients.values()].map((client) => client.close()));
