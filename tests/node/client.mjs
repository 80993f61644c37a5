// Official MCP clients, told by JSON lines on stdin what to do, one after the other: see TypeScript in packages.py.
//
//   {"do": "connect", "client", "package": "sdk"|"client", "url", "token"} or {..., "command", "env"}
//   {"do": "tools", "client"}
//   {"do": "call", "client", "tool", "arguments"}
//
// Answers are {"value"} or {"threw", "code"}. What a client finds wrong by itself goes to stderr.

import * as readline from 'node:readline';

import * as current from '@modelcontextprotocol/client';
import { StdioClientTransport as CurrentStdio } from '@modelcontextprotocol/client/stdio';
import { Client as SdkClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as SdkStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as SdkHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const clients = new Map();

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
    const client = new Client({ name: `typescript-${kind}`, version: '1.0.0' }, options);
    client.onerror = (error) => console.error(`${name}: ${error}`);
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

  async call({ client, tool, arguments: args }) {
    return clients.get(client).callTool({ name: tool, arguments: args });
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const answer = await actions[command.do](command).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ threw: String(error), code: error.code ?? null }),
  );
  process.stdout.write(JSON.stringify(answer) + '\n');
}
for (const client of clients.values()) {
  client.onerror = undefined; // that its streams end now is no fault
  await client.close();
}
