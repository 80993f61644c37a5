// Read, Edit, Bash and Grep as a bare stdio MCP server on the official TypeScript SDK, whose folder is
// the only argument: no gate, no sandbox, no record.

import { execFile } from 'node:child_process';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const sdk = (name) => import(pathToFileURL(join(process.argv[2], 'dist', 'esm', name)).href);
const { Server } = await sdk('server/index.js');
const { StdioServerTransport } = await sdk('server/stdio.js');
const { CallToolRequestSchema, ListToolsRequestSchema } = await sdk('types.js');

const tools = {
  async Read({ file_path }) {
    const lines = (await readFile(file_path, 'utf8')).split('\n');
    return lines.map((line, at) => `${String(at + 1).padStart(6)}\t${line}`).join('\n');
  },
  async Edit({ file_path, old_string, new_string }) {
    const parts = (await readFile(file_path, 'utf8')).split(old_string);
    if (parts.length !== 2) throw new Error('not there once');
    await writeFile(`${file_path}.new`, parts.join(new_string));
    await rename(`${file_path}.new`, file_path);
    return 'done';
  },
  Bash({ command }) {
    return new Promise((resolve) => {
      execFile('bash', ['-c', command], (error, out, err) =>
        resolve(`${out}${err}exit code ${error ? error.code : 0}`));
    });
  },
  async Grep({ pattern }) {
    const wanted = new RegExp(pattern);
    const found = [];
    for (const each of await readdir('.', { recursive: true, withFileTypes: true })) {
      const path = join(each.parentPath, each.name);
      if (each.isFile() && wanted.test(await readFile(path, 'utf8'))) found.push(path);
    }
    return found.join('\n');
  },
};

const server = new Server({ name: 'bare', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => ({
  content: [{ type: 'text', text: await tools[params.name](params.arguments) }],
}));
await server.connect(new StdioServerTransport());
