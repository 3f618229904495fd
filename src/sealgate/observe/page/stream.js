// The stream of pictures, and whether it flows: "live", "reconnecting" after a break, "stalled" without news.

const STALLED_MS = 4000;
const RETRY_MS = 2000;

export function listen(url, { onHistory, onPicture, onState }) {
  let source, timer, state;

  const say = (news) => {
    if (news !== state) onState((state = news));
  };

  const arrived = (handle) => (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => say("stalled"), STALLED_MS);
    say("live");
    handle(JSON.parse(event.data));
  };

  const connect = () => {
    source = new EventSource(url);
    source.addEventListener("history", arrived(onHistory));
    source.addEventListener("picture", arrived(onPicture));
    source.onerror = () => {
      clearTimeout(timer);
      say("reconnecting");
      // A browser gives up where the answer is no stream; the gateway may be back in a moment.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
    };
  };

  connect();
}
