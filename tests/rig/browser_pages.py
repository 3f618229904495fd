"""What a web page can do to place an order at the gateway: two pages that try all their ways, one by one.

Each way names itself in the query, so that what got through can be told. A page ends with a call of
`/done` at its own site. `{gateways}` are the gateway's addresses as a browser may name them.
"""

WAYS_THAT_NEED_NO_LEAVE = frozenset(
    [
        "form",
        "form-null-origin",
        "fetch",
        "fetch-no-referrer",
        "fetch-keepalive",
        "xhr",
        "beacon",
        "ping",
        "image",
        "script",
        "style",
        "frame",
        "frame-no-referrer",
        "events",
    ]
)
"""What browsers send across origins without asking first; all of it gets through where nobody guards."""

_FRAME = """<!doctype html><meta charset=utf-8><title>page</title><body><script>
const settled = (promise) => Promise.race([
    Promise.resolve(promise).catch(() => null), new Promise((go) => setTimeout(go, 2000))]);
const loaded = (element) => settled(new Promise((go) => {
    element.onload = element.onerror = go; document.body.append(element); }));
const make = (name, attributes) => Object.assign(document.createElement(name), attributes);
"""

CROSS_ORIGIN = (
    _FRAME
    + """
const body = '{"symbol":"BTC","side":"buy"}';
const plain = {method: 'POST', mode: 'no-cors', body, headers: {'Content-Type': 'text/plain'}};
const submit = (url, inner) => loaded(make('iframe', inner
    ? {sandbox: 'allow-forms allow-scripts', srcdoc: form(url)}
    : {srcdoc: form(url)}));
const form = (url) => `<form method=POST enctype=text/plain action="${url}">`
    + `<input name='{"a":"' value='"}'></form><script>document.forms[0].submit()</` + 'script>';

const ways = {
    'form': (url) => submit(url, false),
    'form-null-origin': (url) => submit(url, true),
    'fetch': (url) => fetch(url, {...plain, credentials: 'include'}),
    'fetch-no-referrer': (url) => fetch(url, {...plain, referrerPolicy: 'no-referrer'}),
    'fetch-keepalive': (url) => fetch(url, {...plain, keepalive: true}),
    'fetch-json': (url) => fetch(
        url, {method: 'POST', body, headers: {'Content-Type': 'application/json'}}),
    'fetch-delete': (url) => fetch(url, {method: 'DELETE'}),
    'fetch-token': (url) => fetch(url, {headers: {'Authorization': 'Bearer x'}}),
    'xhr': (url) => new Promise((go) => {
        const xhr = new XMLHttpRequest();
        xhr.onloadend = go; xhr.open('POST', url); xhr.withCredentials = true;
        xhr.setRequestHeader('Content-Type', 'text/plain'); xhr.send(body); }),
    'beacon': (url) => navigator.sendBeacon(url, body),
    'ping': (url) => {
        const link = make('a', {href: '#', ping: url});
        document.body.append(link); link.click(); },
    'image': (url) => loaded(make('img', {src: url})),
    'script': (url) => loaded(make('script', {src: url})),
    'style': (url) => loaded(make('link', {rel: 'stylesheet', href: url})),
    'frame': (url) => loaded(make('iframe', {src: url})),
    'frame-no-referrer': (url) => loaded(make('iframe', {src: url, referrerPolicy: 'no-referrer'})),
    'events': (url) => new Promise((go) => {
        const events = new EventSource(url, {withCredentials: true});
        events.onopen = events.onerror = () => { events.close(); go(); }; }),
    'socket': (url) => new Promise((go) => {
        const socket = new WebSocket(url.replace('http', 'ws'));
        socket.onopen = socket.onclose = socket.onerror = go; }),
};
(async () => {
    for (const gateway of %(gateways)s)
        await Promise.all(Object.entries(ways).map(([name, way]) => {
            try { return settled(way(`${gateway}/v1/trade/order?via=${name}`)); } catch { return null; } }));
    await settled(new Promise((go) => setTimeout(go, 300)));
    await fetch('/done', {method: 'POST'});
})();
</script>
"""
)

REBINDING = (
    _FRAME
    + """
const place = (name, options) => settled(
    fetch(`/v1/trade/order?via=${name}`, {cache: 'no-store', ...options}));
(async () => {
    await fetch('/rebind', {method: 'POST'});  // from now on the page's own origin is the gateway
    await place('own-post', {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}});
    await place('own-get', {});
    await place('own-get-no-referrer', {referrerPolicy: 'no-referrer'});
    await place('own-delete', {method: 'DELETE', referrerPolicy: 'no-referrer'});
    await loaded(make('img', {src: '/v1/trade/order?via=own-image', referrerPolicy: 'no-referrer'}));
    await fetch('%(site)s/done', {method: 'POST', mode: 'no-cors'});
})();
</script>
"""
)
WAYS_OF_AN_OWN_ORIGIN = frozenset(["own-post", "own-get", "own-get-no-referrer", "own-delete", "own-image"])
