import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * What an ordinary user's program does, with the ordinary client.
 *
 * produce NAMESRV TOPIC FIRST COUNT BYTES PAUSE_MS    one JSON line for each message: key, status, queue, offset, end (ms)
 * pull    NAMESRV TOPIC GROUP IDLE_MS                 all queues from their beginning, until nothing comes for a while
 * push    NAMESRV TOPIC GROUP COUNT SECONDS           subscribed, until COUNT different keys came or the time is over
 */
public class LabClient {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "produce":
                produce(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]),
                        Integer.parseInt(args[5]), Long.parseLong(args[6]));
                break;
            case "pull":
                pull(args[1], args[2], args[3], Long.parseLong(args[4]));
                break;
            case "push":
                push(args[1], args[2], args[3], Integer.parseInt(args[4]), Long.parseLong(args[5]));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.out.flush();
        System.exit(0);
    }

    private static void produce(String namesrv, String topic, int first, int count, int bytes, long pause)
            throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("lab-producer");
        producer.setNamesrvAddr(namesrv);
        producer.setVipChannelEnabled(false);
        producer.setPollNameServerInterval(1000);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(3000);
        producer.setCompressMsgBodyOverHowmuch(Integer.MAX_VALUE);
        producer.start();
        for (int number = first; number < first + count; number++) {
            String key = "k" + number;
            StringBuilder body = new StringBuilder(key).append(' ');
            while (body.length() < bytes) {
                body.append((char) ('a' + number % 26));
            }
            Message message = new Message(topic, "lab", key, body.toString().getBytes(StandardCharsets.UTF_8));
            try {
                SendResult result = producer.send(message);
                say(key, result.getSendStatus().name(), result.getMessageQueue().getQueueId(),
                        result.getQueueOffset(), result.getMessageQueue().getBrokerName());
            } catch (Exception error) {
                say(key, error.getClass().getSimpleName(), -1, -1, "");
            }
            if (pause > 0) {
                Thread.sleep(pause);
            }
        }
        producer.shutdown();
    }

    private static void pull(String namesrv, String topic, String group, long idle) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setAutoCommit(false);
        consumer.setPollNameServerInterval(1000);
        consumer.start();
        Collection<MessageQueue> queues = consumer.fetchMessageQueues(topic);
        consumer.assign(new ArrayList<>(queues));
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

    private static void push(String namesrv, String topic, String group, int count, long seconds)
            throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setVipChannelEnabled(false);
        consumer.setPollNameServerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        java.util.Set<String> keys = java.util.concurrent.ConcurrentHashMap.newKeySet();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                keys.add(message.getKeys());
                say(message.getKeys(), "READ", message.getQueueId(), message.getQueueOffset(),
                        message.getBrokerName());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long end = System.currentTimeMillis() + seconds * 1000;
        while (keys.size() < count && System.currentTimeMillis() < end) {
            Thread.sleep(50);
        }
        consumer.shutdown();
    }

    private static synchronized void say(String key, String status, int queue, long offset, String broker) {
        System.out.println("{\"key\":\"" + key + "\",\"status\":\"" + status + "\",\"queue\":" + queue
                + ",\"offset\":" + offset + ",\"broker\":\"" + broker + "\",\"at_ms\":"
                + System.currentTimeMillis() + "}");
        System.out.flush();
    }
}
