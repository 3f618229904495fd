// Servers of Node.js that answer with NAME and the path they read: node.cjs SERVER, PORT in the environment.
const port = Number(process.env.PORT), name = process.env.NAME, host = '127.0.0.1';
const said = (path) => `${name}\n${path}`;
const servers = {
  http() { require('http').createServer((q, r) => r.end(said(new URL(q.url, 'http://x').pathname))).listen(port, host); },
  express() { const a = require('express')(); a.use((q, r) => r.type('text').send(said(q.path))); a.listen(port, host); },
  fastify() { const a = require('fastify')(); a.get('/*', async (q) => said('/' + q.params['*'])); a.listen({ port, host }); },
  koa() { const a = new (require('koa'))(); a.use((c) => { c.body = said(c.path); }); a.listen(port, host); },
  async hapi() {
    const s = require('@hapi/hapi').server({ port, host });
    s.route({ method: '*', path: '/{any*}', handler: (q) => said(q.path) }); await s.start();
  },
  restify() { const s = require('restify').createServer(); s.get('/*', (q, r, n) => { r.sendRaw(said(q.path())); n(); }); s.listen(port, host); },
  polka() { require('polka')().use((q, r) => r.end(said(q.path))).listen(port, host); },
  hono() {
    const { Hono } = require('hono'); const { serve } = require('@hono/node-server');
    const a = new Hono(); a.all('*', (c) => c.text(said(c.req.path))); serve({ fetch: a.fetch, port, hostname: host });
  },
};
servers[process.argv[2]]();
