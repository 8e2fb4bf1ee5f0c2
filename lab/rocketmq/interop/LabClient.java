import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * What an ordinary user's program does, with the ordinary client.
 *
 * produce NAMESRV TOPIC FIRST COUNT BYTES PAUSE_MS [HOW]
 *     one JSON line for each message: key, status, queue, offset, broker, end and begin (ms), and which broker stored
 *     it, by the id that it gave. HOW: delayed (level 1), or
 *     refused (a push consumer of this program wants it once more), or
 *     patient (a send may take 20 s, not 3: what a client gives up by itself says nothing of brokers).
 *     TOPIC: several, with commas, take turns by the number of the message; pull reads all of them
 * pull NAMESRV TOPIC GROUP IDLE_MS
 *     all queues from their beginning, until nothing comes for a while
 * push NAMESRV TOPIC GROUP [HOW]
 *     subscribed as one member of the group, from the beginning of what it never read, until it is told to end.
 *     HOW: orderly (each queue in order, by one member at a time)
 * mqadmin COMMAND ARGUMENT... [, COMMAND ARGUMENT...]...
 *     commands of mqadmin one after the other, each after a line with a comma: one start of a JVM for all of them
 * cut NUMBER CODE COMMAND ARGUMENT...
 *     a command of mqadmin that dies before its request with this code of this number, counted from 0; exit code 9
 *
 * Requests are signed as the user of -Dlab.accessKey, whose secret is in the file of -Dlab.secretKeyFile.
 *
 * A fault ends it with exit code 1: threads of the client would keep it alive else.
 */
public class LabClient {
    private static final String REFUSED = "refused";
    private static final String NEXT = ",";
    private static final int CUT = 9;
    // How long a message that is read in order takes.
    private static final long READING_MS = 10;

    public static void main(String[] args) {
        try {
            run(args);
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.out.flush();
        System.exit(0);
    }

    private static void run(String[] args) throws Exception {
        switch (args[0]) {
            case "produce":
                produce(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                        Integer.parseInt(args[5]), Long.parseLong(args[6]), args.length > 7 ? args[7] : "");
                break;
            case "pull":
                pull(args[1], args[2], args[3], Long.parseLong(args[4]));
                break;
            case "push":
                push(args[1], args[2], args[3], args.length > 4 ? args[4] : "");
                break;
            case "mqadmin":
                mqadmin(List.of(args).subList(1, args.length));
                break;
            case "cut":
                MQAdminStartup.main0(List.of(args).subList(3, args.length).toArray(new String[0]),
                        new Death(Integer.parseInt(args[1]), Integer.parseInt(args[2])));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
    }

    private static final class Death implements RPCHook {
        private final AtomicInteger left;
        private final int code;

        Death(int number, int code) {
            this.left = new AtomicInteger(number);
            this.code = code;
        }

        @Override
        public void doBeforeRequest(String address, RemotingCommand request) {
            if (request.getCode() == code && left.getAndDecrement() == 0) {
                Runtime.getRuntime().halt(CUT);
            }
        }

        @Override
        public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
        }
    }

    private static RPCHook signer() throws Exception {
        String user = System.getProperty("lab.accessKey");
        if (user == null) {
            return null;
        }
        String secret = Files.readString(Path.of(System.getProperty("lab.secretKeyFile"))).trim();
        return new AclClientRPCHook(new SessionCredentials(user, secret));
    }

    private static void produce(String namesrv, String topic, int first, int count, int bytes, long pause,
            String how) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("lab-producer", signer());
        producer.setNamesrvAddr(namesrv);
        producer.setVipChannelEnabled(false);
        producer.setPollNameServerInterval(1000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(how.equals("patient") ? 20000 : 3000);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        for (int number = first; number < first + count; number++) {
            String key = "k" + number;
            StringBuilder body = new StringBuilder(key).append(' ');
            while (body.length() < bytes) {
                body.append((char) ('a' + number % 26));
            }
            String[] topics = topic.split(",");
            Message message = new Message(topics[number % topics.length], "lab", key, body.toString().getBytes(StandardCharsets.UTF_8));
            if (how.equals("delayed")) {
                message.setDelayTimeLevel(1);
            } else if (how.equals(REFUSED)) {
                message.putUserProperty(REFUSED, "once");
            }
            long begun = System.currentTimeMillis();
            try {
                SendResult result = producer.send(message);
                say(key, result.getSendStatus().name(), result.getMessageQueue().getQueueId(),
                        result.getQueueOffset(), result.getMessageQueue().getBrokerName(), begun,
                        storedBy(result.getOffsetMsgId()));
            } catch (Exception error) {
                error.printStackTrace();
                say(key, error.getClass().getSimpleName(), -1, -1, refuser(error), begun, "");
            }
            if (pause > 0) {
                Thread.sleep(pause);
            }
        }
        producer.shutdown();
    }

    private static String refuser(Exception error) {
        boolean refused = error instanceof MQBrokerException;
        return refused ? String.valueOf(((MQBrokerException) error).getBrokerAddr()) : "";
    }

    private static String storedBy(String id) throws Exception {
        InetSocketAddress address = (InetSocketAddress) MessageDecoder.decodeMessageId(id).getAddress();
        return address.getAddress().getHostAddress() + ":" + address.getPort();
    }

    private static void pull(String namesrv, String topic, String group, long idle) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group, signer());
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setAutoCommit(false);
        consumer.setPollNameServerInterval(1000);
        consumer.start();
        Collection<MessageQueue> queues = new ArrayList<>();
        for (String each : topic.split(",")) {
            queues.addAll(consumer.fetchMessageQueues(each));
        }
        consumer.assign(queues);
        for (MessageQueue queue : queues) {
            consumer.seekToBegin(queue);
        }
        long last = System.currentTimeMillis();
        while (System.currentTimeMillis() - last < idle) {
            List<MessageExt> messages = consumer.poll(200);
            for (MessageExt message : messages) {
                say(message.getKeys(), "READ", message.getQueueId(), message.getQueueOffset(),
                        message.getBrokerName());
                last = System.currentTimeMillis();
            }
        }
        consumer.shutdown();
    }

    private static void push(String namesrv, String topic, String group, String how) throws Exception {
        DefaultMQPushConsumer consumer =
                new DefaultMQPushConsumer(group, signer(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setPollNameServerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // Messages are refused one by one.
        consumer.setConsumeMessageBatchMaxSize(1);
        consumer.subscribe(topic, "*");
        if (how.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt message : messages) {
                    long begun = System.currentTimeMillis();
                    pause(READING_MS);
                    say(message.getKeys(), "READ", message.getQueueId(), message.getQueueOffset(),
                            message.getBrokerName(), begun, "");
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener(refusing());
        }
        Runtime.getRuntime().addShutdownHook(new Thread(consumer::shutdown));
        consumer.start();
        System.out.println("{\"key\":\"\",\"status\":\"SUBSCRIBED\"}");
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static MessageListenerConcurrently refusing() {
        return (messages, context) -> {
            for (MessageExt message : messages) {
                boolean again = message.getReconsumeTimes() > 0;
                boolean refuse = !again && message.getUserProperty(REFUSED) != null;
                say(message.getKeys(), refuse ? "REFUSED" : again ? "READ_AGAIN" : "READ", message.getQueueId(),
                        message.getQueueOffset(), message.getBrokerName());
                if (refuse) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        };
    }

    private static void mqadmin(List<String> words) {
        List<String> command = new ArrayList<>();
        for (String word : words) {
            if (!word.equals(NEXT)) {
                command.add(word);
                continue;
            }
            mqadminOne(command);
            command.clear();
        }
        mqadminOne(command);
    }

    private static void mqadminOne(List<String> command) {
        System.out.println("\n" + NEXT);
        MQAdminStartup.main0(command.toArray(new String[0]), null);
    }

    private static void say(String key, String status, int queue, long offset, String broker) {
        say(key, status, queue, offset, broker, System.currentTimeMillis(), "");
    }

    private static synchronized void say(String key, String status, int queue, long offset, String broker,
            long begun, String stored) {
        System.out.println("{\"key\":\"" + key + "\",\"status\":\"" + status + "\",\"queue\":" + queue
                + ",\"offset\":" + offset + ",\"broker\":\"" + broker + "\",\"begun_ms\":" + begun
                + ",\"at_ms\":" + System.currentTimeMillis() + ",\"stored\":\"" + stored + "\"}");
        System.out.flush();
    }
}
