// Pipes every connection on the listening port to one fixed target; knows no other address and reads no content.
import net from "node:net";

const host = process.env.RELAY_TARGET_HOST ?? "";
const port = Number(process.env.RELAY_TARGET_PORT ?? "");
const listenHost = process.env.RELAY_LISTEN_HOST ?? "0.0.0.0";
const listenPort = Number(process.env.RELAY_LISTEN_PORT ?? "7895");

if (net.isIP(host) === 0 || !Number.isInteger(port) || port < 1 || port > 65535) {
  console.error("RELAY_TARGET_HOST must be an address and RELAY_TARGET_PORT a port");
  process.exit(2);
}

// allowHalfOpen: one side may finish sending while the other still does.
const server = net.createServer({ allowHalfOpen: true }, (client) => {
  const target = net.connect({ host, port, allowHalfOpen: true });
  const close = () => {
    client.destroy();
    target.destroy();
  };
  client.on("error", close);
  target.on("error", close);
  client.pipe(target);
  target.pipe(client);
});
server.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
server.listen(listenPort, listenHost, () => console.log(`listening ${server.address().port}`));
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => process.exit(0));
}
